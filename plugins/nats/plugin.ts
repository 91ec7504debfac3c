import { resolve } from "node:path";
import { definePlugin, type Plugin } from "skillhost";
import { CatalogSource } from "./catalog-source.ts";
import { FleetMcpPeers } from "./fleet-mcp-peers.ts";
import { createSessionStore } from "./fleet-session-store.ts";
import { RemoteToolSource, type RemoteToolsConfig } from "./remote-tool-source.ts";

export type { FleetConnectionOptions } from "./fleet-connection.ts";
export { type FleetPermissionOptions, type FleetRole, fleetPermissions, type SubjectPermissions } from "./fleet-permissions.ts";
export { createSessionStore, type FleetSessionOptions, type FleetSessionStore } from "./fleet-session-store.ts";
export { type FollowedSkills, type FollowOptions, followSkills } from "./follow-skills.ts";
export {
  type CatalogEntry,
  type HostedSkill,
  type HostReport,
  openSkillCatalog,
  type SkillCatalog,
  type SkillPush,
} from "./skill-catalog.ts";
export { startToolWorker, type ToolWorker, type ToolWorkerOptions, type WorkerStatistics } from "./tool-worker.ts";

interface NatsConfig extends RemoteToolsConfig {
  readonly follow?: string | undefined;
  readonly sessions?: boolean | { readonly replicas?: number; readonly lease?: number } | undefined;
  readonly mcp?: boolean | { readonly replicas?: number } | undefined;
  readonly hostName?: string | undefined;
}

const text = { type: "string", minLength: 1 } as const;

/** Offers the tools of a fleet's workers in every session of a host, and loads the skills of its catalog if that is wanted. */
export const nats: Plugin = definePlugin<NatsConfig>({
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
      follow: {
        ...text,
        description:
          "A folder, from the working directory: the skills of the fleet's catalog are loaded there. Nothing else may write to it.",
      },
      hostName: {
        ...text,
        description: "The name of this host in reports, by which its share of canaries is decided. Default: the machine's.",
      },
      sessions: {
        anyOf: [
          { type: "boolean" },
          {
            type: "object",
            properties: { replicas: { enum: [1, 3, 5] }, lease: { type: "integer", minimum: 500, maximum: 60_000 } },
            additionalProperties: false,
          },
        ],
        description:
          "Keeps the sessions of this host in a stream, where other hosts resume them. replicas: on how many servers; lease: milliseconds until those of a host that died are free. Both are decided by the first host.",
      },
      mcp: {
        anyOf: [{ type: "boolean" }, { type: "object", properties: { replicas: { enum: [1, 3, 5] } }, additionalProperties: false }],
        description:
          "MCP servers of this host answer for those of other hosts with this, and they for it. replicas: on how many servers the records of sessions are.",
      },
      startupWait: { type: "integer", minimum: 0, default: 2000, description: "Milliseconds to wait for the servers once." },
      maxResult: { type: "integer", minimum: 1024, default: 67_108_864, description: "Bytes of a result." },
    },
    additionalProperties: false,
  },
  activate(api) {
    const { follow, hostName, sessions = false, mcp = false, ...config } = api.config;
    api.addToolSource(new RemoteToolSource(api, config));
    if (sessions !== false) {
      const store = createSessionStore({ ...config, ...(sessions !== true && sessions) });
      api.addSessionStore(store);
      api.onDispose(async () => store[Symbol.asyncDispose]());
    }
    if (mcp !== false) {
      const peers = new FleetMcpPeers({ ...config, ...(mcp !== true && mcp), log: api.log });
      api.addMcpPeers(peers);
      api.onDispose(async () => peers[Symbol.asyncDispose]());
    }
    if (follow === undefined) return;
    const folder = resolve(api.workingDirectory, follow);
    api.addToolSource(new CatalogSource(api, { ...config, folder, name: hostName }));
    api.addSkillDirectory(folder);
  },
});
