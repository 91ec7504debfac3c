import type { Diagnostic } from "../../base/diagnostic.ts";
import { isRecord } from "../../base/json.ts";
import { toolPatterns } from "../agents/agent-file.ts";
import { createFieldReader } from "../text/json-fields.ts";
import { parseYamlMap } from "../text/parse-yaml.ts";
import { readSkillPermissions, type SkillPermissions } from "./skill-permissions.ts";

interface ForeignTexts {
  /** Of SKILL.md. */
  readonly document: string;
  readonly allowedTools: readonly string[];
  /** `agents/openai.yaml` and its content, if there is one. */
  readonly sidecar?: { readonly file: string; readonly text: string } | undefined;
}

interface ForeignPermissions {
  /** Absent: nothing is declared. */
  readonly permissions?: SkillPermissions;
  readonly diagnostics: readonly Diagnostic[];
}

/**
 * What a skill declares for other hosts, as permissions: `allowed-tools` of its front matter, and the permissions and dependencies that Codex
 * reads. What cannot be expressed here, such as network access to any host or tools with patterns for arguments, declares nothing.
 */
export function readForeignPermissions({ document, allowedTools, sidecar }: ForeignTexts): ForeignPermissions {
  const diagnostics: Diagnostic[] = [];
  const warn = (file: string, message: string): void => void diagnostics.push({ severity: "warning", code, file, message });
  const tools = allowedTools.filter((tool) => !tool.includes("(")).flatMap(toolPatterns);
  const needs = sidecar === undefined ? {} : readSidecar(sidecar.text, (message) => warn(sidecar.file, message));
  const given = Object.fromEntries(Object.entries({ ...needs, tools }).filter(([, items]) => items.length > 0));
  if (Object.keys(given).length === 0) return { diagnostics };
  const fields = createFieldReader({ permissions: given }, () => {}, { code, path: [] });
  const permissions = readSkillPermissions(fields, (_severity, _code, message, [, kind]) =>
    warn(kind === "tools" ? document : (sidecar?.file ?? document), message),
  );
  return { ...(permissions && { permissions }), diagnostics };
}

const code = "SKILL_FOREIGN_PERMISSIONS";

/** Values of any type: who reads them as permissions checks them. */
type Needs = Readonly<Partial<Record<"env" | "read" | "write" | "servers", readonly unknown[]>>>;

function readSidecar(text: string, warn: (message: string) => void): Needs {
  const parsed = parseYamlMap(text);
  if (parsed.kind === "broken") warn(`This file is not valid YAML, so it declares nothing: ${parsed.fault.message}`);
  else if (parsed.kind === "other")
    warn("This file must contain a mapping, so it declares nothing. Write permissions: and dependencies: at its top.");
  if (parsed.kind !== "map") return {};
  const declared = recordAt(parsed.data, "permissions");
  const files = recordAt(declared, "file_system");
  if (declared["network"] === true || recordAt(declared, "network")["enabled"] === true)
    warn(
      'This file declares network access without naming hosts, which gives none here. Name them in "hosts" of "permissions" in skill.json.',
    );
  const needed = listOf(recordAt(parsed.data, "dependencies")["tools"]).filter(isRecord);
  const ofType = (type: string): readonly unknown[] => needed.filter((each) => each["type"] === type).map((each) => each["value"]);
  return {
    env: ofType("env_var"),
    read: [...listOf(declared["fs_read"]), ...listOf(files["read"])],
    write: [...listOf(declared["fs_write"]), ...listOf(files["write"])],
    servers: ofType("mcp"),
  };
}

function recordAt(data: Readonly<Record<string, unknown>>, key: string): Readonly<Record<string, unknown>> {
  const value = Object.hasOwn(data, key) ? data[key] : undefined;
  return isRecord(value) ? value : {};
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
