import { importBundled, natsPlugin } from "../../plugin-host/bundled.ts";
import type { CommandContext } from "../command-context.ts";

const allRoles = ["worker", "host", "publisher"] as const;
type Role = (typeof allRoles)[number];

export interface FleetPermissionsOptions {
  readonly role?: readonly Role[];
  readonly prefix?: string;
  readonly sessions?: boolean;
  readonly mcp?: boolean;
  readonly passwords?: boolean;
}

interface Permissions {
  readonly publish: readonly string[];
  readonly subscribe: readonly string[];
}

/** The part of the plugin for NATS that this command uses. */
interface NatsModule {
  fleetPermissions(role: Role, options: object): Permissions;
}

/** Prints what the users of a fleet may do, as a part of the configuration of nats-server. Connects to nothing. */
export async function fleetPermissions({ out }: CommandContext, options: FleetPermissionsOptions): Promise<number> {
  const { role: roles = allRoles, prefix, sessions, mcp, passwords = false } = options;
  const { fleetPermissions: permissionsOf } = (await importBundled(natsPlugin)) as unknown as NatsModule;
  const users = [...new Set(roles)].map((role) => ({ role, permissions: permissionsOf(role, { prefix, sessions, mcp }) }));
  if (out.isJson) out.envelope({ ok: true, data: { users }, diagnostics: [] });
  else out.line(serverConfiguration(users, passwords));
  return 0;
}

/** nats-server does not start when it refers to a variable that its environment does not have. */
function serverConfiguration(users: readonly { readonly role: Role; readonly permissions: Permissions }[], passwords: boolean): string {
  const blocks = users.map(({ role, permissions }) => {
    const variable = `$SKILLHOST_${role.toUpperCase()}_`;
    const who = passwords ? `user: ${role}, password: ${variable}PASSWORD` : `nkey: ${variable}NKEY`;
    const list = (subjects: readonly string[]): string => `[\n${subjects.map((one) => `        "${one}"`).join("\n")}\n      ]`;
    return `    { ${who}, permissions: {\n      publish: ${list(permissions.publish)}\n      subscribe: ${list(permissions.subscribe)}\n    } }`;
  });
  return `authorization {\n  users = [\n${blocks.join("\n")}\n  ]\n}`;
}
