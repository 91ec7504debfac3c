import { createCatalogMemo } from "../session/catalog/catalog-memo.ts";
import { ConfiguredServers } from "./configured-servers.ts";
import type { ResolvedHostOptions } from "./host-options.ts";
import type { ServerSets } from "./server-sets.ts";
import type { EnvironmentParts } from "./session-environment.ts";
import { createSkillViews } from "./skill-views.ts";

type Given = Pick<EnvironmentParts, "plugins" | "store" | "approvals" | "pushTrust" | "consent"> & { readonly sets: ServerSets };

/** Puts together what the sessions of a host share. */
export function createEnvironmentParts(options: ResolvedHostOptions, { sets, ...given }: Given): EnvironmentParts {
  const { mcp, log } = options;
  const { store, plugins } = given;
  return {
    options,
    ...given,
    views: createSkillViews(options, store, plugins),
    memo: createCatalogMemo(),
    servers: { sets, configured: new ConfiguredServers(options, plugins), policy: mcp, startupWait: mcp.startupWait, log },
  };
}
