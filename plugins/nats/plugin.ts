import { definePlugin, type Plugin } from "skillhost";
import { RemoteToolSource, type RemoteToolsConfig } from "./remote-tool-source.ts";

export type { FleetConnectionOptions } from "./fleet-connection.ts";
export { type FollowedSkills, type FollowOptions, followSkills } from "./follow-skills.ts";
export {
  type CatalogEntry,
  type HostedSkill,
  type HostReport,
  openSkillCatalog,
  type SkillCatalog,
  type SkillPush,
} from "./skill-catalog.ts";
export { startToolWorker, type ToolWorker, type ToolWorkerOptions } from "./tool-worker.ts";

const text = { type: "string", minLength: 1 } as const;

/** Offers the tools of a fleet's workers in every session of a host. */
export const nats: Plugin = definePlugin<RemoteToolsConfig>({
  name: "nats",
  version: "1.0.0",
  configSchema: {
    type: "object",
    required: ["servers"],
    properties: {
      servers: { anyOf: [text, { type: "array", items: text, minItems: 1 }], description: "Addresses of NATS servers." },
      prefix: { ...text, description: "The first part of every subject. Default: skillhost." },
      credentials: { ...text, description: "A credentials file, with JWT and key." },
      nkey: { ...text, description: "A file with the seed of an NKey." },
      token: text,
      user: text,
      password: text,
      tls: {
        anyOf: [{ const: false }, { type: "object", properties: { ca: text, cert: text, key: text }, additionalProperties: false }],
        description: "Files with certificates, or false for none. Default: TLS for servers that are not on this machine.",
      },
      signatures: { type: "array", items: text, description: "The only contracts of tools that are offered. Default: all." },
      startupWait: { type: "integer", minimum: 0, default: 2000, description: "Milliseconds to wait for the servers once." },
      maxResult: { type: "integer", minimum: 1024, default: 67_108_864, description: "Bytes of a result." },
    },
    additionalProperties: false,
  },
  activate(api) {
    api.addToolSource(new RemoteToolSource(api, api.config));
  },
});
