import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { ErrorObject, ValidateFunction } from "ajv";
import { Ajv2019 } from "ajv/dist/2019.js";
import addFormats from "ajv-formats";

/** The official runtime whose schemas count: the one that SDK 1.0.14 starts by default. The schemas are a small part of its tarball. */
export const contractPackage = {
  name: "@github/copilot-sdk-linux-x64",
  version: "1.0.14",
  integrity: "sha512-1wlAVTK1z7ovAez0tixr+f77TnjB3fqKobamu1pG7FYyCTwQuyU4p1aWNXF9j/u1d7rxSY1n9cAxrtEAUkizbg==",
} as const;

export const schemaFiles = ["api.schema.json", "session-events.schema.json"] as const;

/** Where `npm run test:interop` puts the schemas, which are too large for the repository. */
export const schemaFolder: string = fileURLToPath(
  new URL(`../../../node_modules/.cache/copilot-schemas/${contractPackage.version}/`, import.meta.url),
);

export const hasSchemas: boolean = schemaFiles.every((file) => existsSync(join(schemaFolder, file)));

const permissionFields = [
  "description",
  "toolName",
  "toolArgs",
  "toolDescription",
  "possiblePaths",
  "commands",
  "commandSegments",
  "possiblePaths",
  "possibleUrls",
  "hasWriteFileRedirection",
  "readOnly",
  "skipPermission",
  // What a tool that is written in JSON reaches: a custom tool's request has no field for it.
  "fullCommandText",
  "method",
  "url",
  "environment",
];

/** Says what is wrong with a message of ours; undefined: nothing, or there is nothing to hold it against. */
export interface WireContract {
  /** The methods that a client may call. */
  readonly methods: readonly string[];
  /** The types of its events. */
  readonly eventTypes: readonly string[];
  result(method: string, value: unknown): string | undefined;
  /** The problem of a request or notification to a client. */
  request(method: string, params: unknown): string | undefined;
  event(event: unknown): string | undefined;
}

/** What the runtime sends, held against the schemas of the official one. Undefined: the schemas are not there. */
export function loadContract(): WireContract | undefined {
  contract ??= hasSchemas ? new SchemaContract() : undefined;
  return contract;
}

let contract: SchemaContract | undefined;

/**
 * What we send beyond the contract. SDKs drop fields that they do not know, but a field that stands here by mistake is one
 * that no client reads: each has its reason.
 */
const beyond: Readonly<Record<string, readonly string[]>> = {
  // Which contract of the tools a client has seen.
  "session.tools_updated": ["data.version"],
  // What session.send answered, so that a client finds its own message.
  "user.message": ["data.messageId"],
  // Every request says which tool is to run, with which arguments, and several files at once.
  "permission.requested": ["permissionRequest", "promptRequest"].flatMap((request) =>
    permissionFields.map((field) => `data.${request}.${field}`),
  ),
  "session.permissions.pendingRequests": permissionFields.map((field) => `items.*.request.${field}`),
  "exit_plan_mode.requested": ["data.toolCallId"],
  // What hooks made of the model's arguments.
  "tool.execution_complete": ["data.arguments"],
  // How long until the request is repeated, and which time this was.
  "model.call_failure": ["data.interactionId", "data.attempt", "data.retryDelayMs"],
  // Where a person signs in, if the client opens the page itself.
  "mcp.oauth_required": ["data.authorizationUrl", "data.redirectUrl"],
  "session.mcp.list": ["servers.*.transport"],
  "session.queue.pendingItems": ["items.*.messageId"],
  "session.queue.snapshot": ["items.*.messageId"],
  "tools.list": ["tools.*.source", "tools.*.deferred", "tools.*.signature"],
  "mcp.config.list": ["servers.*.oauth"],
};

/** Results that the official runtime sends although its own schema does not allow them. */
const customary: Readonly<Record<string, string>> = { "session.agent.getCurrent": "{}" };

/** Methods that have events in their results, and no schema of their own. */
const eventLists: ReadonlySet<string> = new Set(["session.getMessages"]);

// biome-ignore lint/suspicious/noExplicitAny: a document that is looked into freely
type Document = any;

class SchemaContract implements WireContract {
  readonly #ajv = new Ajv2019({ strict: false, validateSchema: false, allErrors: true, verbose: true });
  readonly #methods = new Map<string, { readonly params?: string; readonly result?: string }>();
  readonly #events = new Map<string, string>();
  readonly #compiled = new Map<string, ValidateFunction>();
  readonly #calledByClients: readonly string[];

  constructor() {
    addFormats.default(this.#ajv);
    const [api, events] = schemaFiles.map((file) => this.#add(file));
    for (const group of ["server", "session"]) this.#findMethods(api[group], group);
    this.#calledByClients = [...this.#methods.keys()];
    for (const group of ["clientSession", "clientGlobal"]) this.#findMethods(api[group], group);
    for (const { $ref } of events.definitions.SessionEvent.anyOf) {
      const type = events.definitions[$ref.split("/").at(-1)].properties.type.const;
      this.#events.set(type, `session-events.schema.json${$ref}`);
    }
  }

  get methods(): readonly string[] {
    return this.#calledByClients;
  }

  get eventTypes(): readonly string[] {
    return [...this.#events.keys()];
  }

  result(method: string, value: unknown): string | undefined {
    if (customary[method] === JSON.stringify(value)) return undefined;
    if (eventLists.has(method)) return (value as Document).events.map((event: unknown) => this.event(event)).find(isText);
    const faults = method === "session.eventLog.read" ? (value as Document).events.map((event: unknown) => this.event(event)) : [];
    const rest = faults.length === 0 ? value : { ...(value as object), events: [] };
    return faults.find(isText) ?? this.#check(this.#methods.get(method)?.result, rest, method, `the result of ${method}`);
  }

  request(method: string, params: unknown): string | undefined {
    return this.#check(this.#methods.get(method)?.params, params, method, `the parameters of ${method}`);
  }

  event(event: unknown): string | undefined {
    const { type } = event as { readonly type: string };
    const pointer = this.#events.get(type);
    return pointer === undefined ? `there is no event ${type}` : this.#check(pointer, event, type, `the event ${type}`);
  }

  #add(file: string): Document {
    const document = JSON.parse(readFileSync(join(schemaFolder, file), "utf8"));
    this.#ajv.addSchema(document, file);
    return document;
  }

  #findMethods(group: Document, path: string): void {
    if (typeof group.rpcMethod !== "string") {
      for (const [name, member] of Object.entries(group)) this.#findMethods(member, `${path}/${name}`);
      return;
    }
    const pointer = (part: "params" | "result"): object =>
      group[part] === undefined ? {} : { [part]: `api.schema.json#/${path}/${part}` };
    this.#methods.set(group.rpcMethod, { ...pointer("params"), ...pointer("result") });
  }

  #check(pointer: string | undefined, value: unknown, name: string, what: string): string | undefined {
    if (pointer === undefined) return undefined;
    const validate = this.#compiled.get(pointer) ?? this.#ajv.compile({ $ref: pointer });
    this.#compiled.set(pointer, validate);
    // As it is on the wire: what is undefined is not there.
    const sent = JSON.parse(JSON.stringify(value));
    for (const path of beyond[name] ?? []) if (!validate(sent)) removeAt(sent, path.split("."), ofLikelyBranches(validate.errors!));
    if (validate(sent)) return undefined;
    const faults = ofLikelyBranches(validate.errors!).map(
      ({ instancePath, message, params }) => `${instancePath || "/"} ${message} ${JSON.stringify(params)}`,
    );
    return `${what} breaks the contract: ${[...new Set(faults)].slice(0, 8).join("; ")} in ${JSON.stringify(value).slice(0, 1_000)}`;
  }
}

/** Removes a field where the schema does not know it: of some kinds of a union it may be a field of the contract. */
function removeAt(value: Document, [name, ...rest]: readonly string[], errors: readonly ErrorObject[], at = ""): void {
  if (typeof value !== "object" || value === null || name === undefined) return;
  if (name === "*") for (const [key, member] of Object.entries(value)) removeAt(member, rest, errors, `${at}/${key}`);
  else if (rest.length > 0) removeAt(value[name], rest, errors, `${at}/${name}`);
  else if (errors.some(({ instancePath, params }) => instancePath === at && params["additionalProperty"] === name)) delete value[name];
}

/** Without the kinds of a union that a value does not say it is of. */
function ofLikelyBranches(errors: readonly ErrorObject[]): readonly ErrorObject[] {
  const likely = errors.filter(({ keyword, instancePath, parentSchema, data }) => {
    if (keyword === "anyOf" || (keyword === "const" && /\/(kind|type)$/.test(instancePath))) return false;
    const { kind, type } = (parentSchema as Document).properties ?? {};
    return isOf(kind, (data as Document)?.kind) && isOf(type, (data as Document)?.type);
  });
  return likely.length > 0 ? likely : errors;
}

function isOf(property: Document, value: unknown): boolean {
  return property?.const === undefined || property.const === value;
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}
