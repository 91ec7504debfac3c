import { type Fields, isFields } from "./wire.ts";

/** Why the server would refuse a tool. */
export interface RegistrationIssue {
  /** JSON pointer into the registration. */
  readonly pointer: string;
  readonly message: string;
}

/**
 * What the server has against a registration: it takes none of a request when it refuses one, so nothing is sent that
 * has an issue. No issues: the server takes it.
 */
export function lintRegistration(registration: unknown): readonly RegistrationIssue[] {
  if (!isFields(registration)) return [{ pointer: "", message: "must be an object" }];
  const { name, description, inputSchema, confirmationMessages } = registration;
  return [
    ...text("/name", name),
    ...text("/description", description),
    ...(inputSchema === undefined || inputSchema === null ? [] : lintSchema(inputSchema)),
    ...(confirmationMessages === undefined || confirmationMessages === null ? [] : lintMessages(confirmationMessages)),
  ];
}

function lintSchema(schema: unknown): readonly RegistrationIssue[] {
  if (!isFields(schema)) return [{ pointer: "/inputSchema", message: "must be an object" }];
  const { type, properties, required } = schema;
  return [
    ...text("/inputSchema/type", type),
    ...(isFields(properties) ? lintProperties(properties) : [missing("/inputSchema/properties", properties, "an object")]),
    ...lintRequired(required),
  ];
}

function lintProperties(properties: Fields): readonly RegistrationIssue[] {
  return Object.entries(properties).flatMap(([name, property]) => {
    const pointer = `/inputSchema/properties/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;
    if (!isFields(property)) return [{ pointer, message: "must be an object" }];
    return [...text(`${pointer}/type`, property["type"]), ...text(`${pointer}/description`, property["description"])];
  });
}

function lintRequired(required: unknown): readonly RegistrationIssue[] {
  const pointer = "/inputSchema/required";
  if (!Array.isArray(required)) return [missing(pointer, required, "a list, if only an empty one")];
  return required.flatMap((name: unknown, index) => text(`${pointer}/${index}`, name));
}

function lintMessages(messages: unknown): readonly RegistrationIssue[] {
  if (!isFields(messages)) return [{ pointer: "/confirmationMessages", message: "must be an object" }];
  return [...text("/confirmationMessages/title", messages["title"]), ...text("/confirmationMessages/message", messages["message"])];
}

function text(pointer: string, value: unknown): readonly RegistrationIssue[] {
  return typeof value === "string" ? [] : [missing(pointer, value, "a text")];
}

function missing(pointer: string, value: unknown, what: string): RegistrationIssue {
  return { pointer, message: `${value === undefined ? "is missing: it " : ""}must be ${what}` };
}
