import type { JsonSchema } from "skillhost";

/** Options for the language server. */
export interface LanguageServerOptions {
  /**
   * The server's program or its JavaScript file, relative to the session's working directory. Default: that of the npm
   * package `@github/copilot-language-server` that is installed there, or one in the search path.
   */
  readonly server?: string | undefined;
  /** Variables for the server in addition to those of the host. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /**
   * The host's environment. The server receives the variables that it reads itself: sign-in, state folder and proxy.
   * Default: that of this process.
   */
  readonly hostEnvironment?: Readonly<Record<string, string | undefined>> | undefined;
  /** The complete environment of the server instead. Nothing is added to it. */
  readonly environment?: Readonly<Record<string, string>> | undefined;
  /** Time limit for the start in milliseconds. Default: 90,000, since older servers take half a minute on a new machine. */
  readonly startTimeout?: number | undefined;
  /**
   * Whether the server runs its own tools without asking. Default: false, it asks for each call and the session's
   * permissions decide. Calls of the session's tools always go through its permissions.
   */
  readonly autoApproval?: boolean | undefined;
  /** Maximum characters of a tool's result for the model, including the note about what is omitted. Default: 4,000. */
  readonly outputLimit?: number | undefined;
  /**
   * How to handle a schema that the server would reject. `repair`, the default, adds what is missing and reports it;
   * with `strict` the tool is not offered.
   */
  readonly schemas?: "repair" | "strict" | undefined;
  /** Default: the default of the server. */
  readonly model?: string | undefined;
  /** Whether the server sends usage data to GitHub. Default: false. */
  readonly telemetry?: boolean | undefined;
}

/** The same options as configuration of the plugin. */
export const configSchema: JsonSchema = {
  type: "object",
  properties: {
    server: { type: "string", minLength: 1 },
    env: { type: "object", additionalProperties: { type: "string" } },
    environment: { type: "object", additionalProperties: { type: "string" } },
    startTimeout: { type: "number", exclusiveMinimum: 0 },
    autoApproval: { type: "boolean" },
    outputLimit: { type: "integer", minimum: 100 },
    schemas: { enum: ["repair", "strict"] },
    model: { type: "string", minLength: 1 },
    telemetry: { type: "boolean" },
  },
  additionalProperties: false,
};

/**
 * The server's settings. By default it asks only about terminals, its own MCP servers and files outside the workspace;
 * with `editorHandlesAllConfirmation` it asks about every call.
 */
export function toSettings({ autoApproval = false, telemetry = false }: LanguageServerOptions): object {
  return {
    telemetry: { telemetryLevel: telemetry ? "all" : "off" },
    github: {
      copilot: {
        agent: {
          editorHandlesAllConfirmation: !autoApproval,
          toolConfirmAutoApprove: autoApproval,
          autoApproveYoloMode: autoApproval,
        },
      },
    },
  };
}
