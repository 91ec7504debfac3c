import type { JsonSchema } from "skillhost";

/** What a host may say about the tools of a workspace. */
export interface WorkspaceConfig {
  /** Whose names and texts the tools have: the Copilot runtime's, those of editors, or both. */
  readonly presentation: "copilot" | "editor" | "both";
  /** Folders that the tools may work in beside those of the session; relative ones start at the host's working directory. */
  readonly roots: readonly string[];
  /** Whether there are tools for shell commands. */
  readonly shell: boolean;
  /** Whether there is a tool that fetches web pages. */
  readonly web: boolean;
  /** Variables of the host's environment that commands get beside those that every command gets. */
  readonly environment: readonly string[];
  /** Hosts whose names may stand for addresses of a private network. */
  readonly privateHosts: readonly string[];
  /** Whether commands run within limits of the operating system while rules about paths or addresses exist: `auto`, where it can. */
  readonly confinement: "auto" | "off";
}

export const configSchema: JsonSchema = {
  type: "object",
  properties: {
    presentation: {
      enum: ["copilot", "editor", "both"],
      default: "copilot",
      description: "Whose names and texts the tools have: the Copilot runtime's, those of editors, or both.",
    },
    roots: {
      type: "array",
      items: { type: "string", minLength: 1 },
      default: [],
      description: "Folders that the tools may work in beside those of the session.",
    },
    shell: { type: "boolean", default: true, description: "Whether there are tools for shell commands." },
    web: { type: "boolean", default: true, description: "Whether there is a tool that fetches web pages." },
    environment: {
      type: "array",
      items: { type: "string", minLength: 1 },
      default: [],
      description: "Names of the host's environment variables that commands get, beside those that every command gets.",
    },
    privateHosts: {
      type: "array",
      items: { type: "string", minLength: 1 },
      default: [],
      description: "Hosts with public names that stand for addresses of a private network, which pages may be fetched from nevertheless.",
    },
    confinement: {
      enum: ["auto", "off"],
      default: "auto",
      description:
        "Whether commands run within limits of the operating system while rules about paths or addresses exist: auto, where it can.",
    },
  },
  additionalProperties: false,
};
