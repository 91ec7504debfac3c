import { definePlugin, type Plugin } from "skillhost";
import { Context7 } from "./context7.ts";
import { createLibraryTools } from "./library-tools.ts";

/** The configuration with defaults applied. */
interface Config {
  readonly context7: boolean;
  readonly baseUrl: string;
  readonly apiKey?: string;
}

/** Documentation of libraries: bundled documents, and Context7 if it is enabled. */
export const libraryDocs: Plugin = definePlugin<Config>({
  name: "library-docs",
  version: "1.0.0",
  configSchema: {
    type: "object",
    properties: {
      context7: {
        type: "boolean",
        default: false,
        description: "Requests documentation that is not bundled from Context7 over the network.",
      },
      baseUrl: { type: "string", pattern: "^https?://", default: "https://context7.com/api", description: "Where Context7 is." },
      apiKey: { type: "string", description: "Sent to Context7 as a bearer token. Without a key it allows fewer requests." },
    },
    additionalProperties: false,
  },
  activate(api) {
    const { context7, ...options } = api.config;
    const documents = new URL("./docs/", import.meta.url);
    api.addTools(createLibraryTools({ documents, ...(context7 && { context7: new Context7(options, api.fetch) }) }));
  },
});
