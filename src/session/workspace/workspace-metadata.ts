import { parseYamlMap } from "../../formats/text/parse-yaml.ts";

/** What `workspace.yaml` says about a workspace, with the field names of the Copilot SDK. Unknown fields are kept. */
export type WorkspaceMetadata = Readonly<Record<string, string | number | boolean>>;

/** The fields of a `workspace.yaml` that are texts, numbers or booleans. Damaged text has none. */
export function parseMetadata(text: string): WorkspaceMetadata {
  const parsed = parseYamlMap(text);
  if (parsed.kind !== "map") return {};
  const scalars = Object.entries(parsed.data).filter((field): field is [string, string | number | boolean] =>
    ["string", "number", "boolean"].includes(typeof field[1]),
  );
  return Object.fromEntries(scalars);
}

/** One field a line. Every JSON scalar is a YAML scalar. */
export function toYaml(metadata: WorkspaceMetadata): string {
  return Object.entries(metadata)
    .map(
      ([name, value]) =>
        `${JSON.stringify(name).slice(1, -1)}: ${typeof value === "string" && isPlain(value) ? value : JSON.stringify(value)}\n`,
    )
    .join("");
}

/** Whether YAML reads this text as it is. Text that could be a number, a date or a keyword is quoted. */
function isPlain(text: string): boolean {
  return /^[A-Za-z/][\w./-]*$/.test(text) && !/^(?:true|false|null|yes|no|on|off|y|n)$/i.test(text);
}
