import type { LanguageServerOptions } from "./options.ts";

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
