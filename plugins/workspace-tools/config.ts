import type { JsonSchema } from "skillhost";

/** Configuration of the workspace tools. */
export interface WorkspaceConfig {
  /** Tool names and texts: those of the Copilot runtime, of editors, or both. */
  readonly presentation: "copilot" | "editor" | "both";
  /** Folders that the tools may use in addition to those of the session. Relative paths start at the host's working directory. */
  readonly roots: readonly string[];
  /** Offers tools for shell commands. */
  readonly shell: boolean;
  /** Offers a tool that fetches web pages. */
  readonly web: boolean;
  /** Variables of the host's environment that commands receive in addition to the default ones. */
  readonly environment: readonly string[];
  /** Host names that may resolve to addresses of a private network. */
  readonly privateHosts: readonly string[];
  /** Whether the operating system confines commands while rules about paths or addresses exist. `auto`: where it can. */
  readonly confinement: "auto" | "off";
}

export const configSchema: JsonSchema = {
  type: "object",
  properties: {
    presentation: {
      enum: ["copilot", "editor", "both"],
      default: "copilot",
      description: "Tool names and texts: those of the Copilot runtime, of editors, or both.",
    },
    roots: {
      type: "array",
      items: { type: "string", minLength: 1 },
      default: [],
      description: "Folders that the tools may use in addition to those of the session.",
    },
    shell: { type: "boolean", default: true, description: "Offers tools for shell commands." },
    web: { type: "boolean", default: true, description: "Offers a tool that fetches web pages." },
    environment: {
      type: "array",
      items: { type: "string", minLength: 1 },
      default: [],
      description: "Names of the host's environment variables that commands receive in addition to the default ones.",
    },
    privateHosts: {
      type: "array",
      items: { type: "string", minLength: 1 },
      default: [],
      description: "Host names from which pages may be fetched although they resolve to addresses of a private network.",
    },
    confinement: {
      enum: ["auto", "off"],
      default: "auto",
      description: "Whether the operating system confines commands while rules about paths or addresses exist. auto: where it can.",
    },
  },
  additionalProperties: false,
};
