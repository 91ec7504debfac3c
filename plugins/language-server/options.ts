import type { JsonSchema } from "skillhost";

/** How the language server is started and dealt with. */
export interface LanguageServerOptions {
  /**
   * The server's program, or its JavaScript file; relative to the session's working directory. Default: the one of the npm
   * package `@github/copilot-language-server` that is installed there, or one in the search path.
   */
  readonly server?: string | undefined;
  /** Variables for the server beside those that it gets of the host's. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /**
   * The host's environment, of which the server gets what it reads itself: who is signed in, where it keeps its state, and
   * the way through a proxy. Default: that of this process.
   */
  readonly hostEnvironment?: Readonly<Record<string, string | undefined>> | undefined;
  /** The server's whole environment instead: nothing is added to it. */
  readonly environment?: Readonly<Record<string, string>> | undefined;
  /** Milliseconds that the server may take to start. Default: 90,000; older ones take half a minute on a new machine. */
  readonly startTimeout?: number | undefined;
  /**
   * Whether the server runs what it brings itself without asking. Default: false, it asks about each call and the session's
   * permissions decide. Tools of the session go through its permissions either way.
   */
  readonly autoApproval?: boolean | undefined;
  /** Characters of a tool's result that the model is given at most, the note of what is left out among them. Default: 4,000. */
  readonly outputLimit?: number | undefined;
  /**
   * What happens with a schema that the server would not take: `repair`, the default, fills in what is missing and says so;
   * with `strict` the tool is not offered.
   */
  readonly schemas?: "repair" | "strict" | undefined;
  /** Default: the one that the server says is its default. */
  readonly model?: string | undefined;
  /** Whether the server reports to GitHub how it is used. Default: false. */
  readonly telemetry?: boolean | undefined;
}

/** The same options as the configuration of the plugin. */
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
 * The server's settings. Left to itself it asks about nothing but terminals, servers of its own and files outside of the
 * workspace; with `editorHandlesAllConfirmation` it asks about every call.
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
