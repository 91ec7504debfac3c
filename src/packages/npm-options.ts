import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join, resolve } from "node:path";

/** The options for npm's libraries: registries, credentials and the cache, as npm itself is configured. */
export type NpmOptions = Readonly<Record<string, unknown>> & { readonly cache: string; readonly registry: string };

export interface NpmPlace {
  /** The project's folder, whose .npmrc overrides the user's. */
  readonly project: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/**
 * Reads npm's configuration: the environment (`npm_config_*`), the .npmrc files of the project, the user and the machine. Install scripts
 * are off, and no configuration turns them on.
 */
export function readNpmOptions({ project, env }: NpmPlace): NpmOptions {
  const fromEnv = new Map<string, string>();
  for (const [name, value] of Object.entries(env)) {
    const match = /^npm_config_(.+)$/i.exec(name);
    if (match === null || value === undefined || value === "") continue;
    const key = match[1]!;
    // Keys of a registry or scope are kept; in others, underscores stand for hyphens.
    fromEnv.set(key.startsWith("//") || key.startsWith("@") ? key : key.toLowerCase().replaceAll("_", "-"), value);
  }
  const user = fromEnv.get("userconfig") ?? join(homedir(), ".npmrc");
  const machine = fromEnv.get("globalconfig") ?? join(resolve(process.execPath, "../.."), "etc/npmrc");
  const all = new Map([
    ...readNpmrc(machine, env),
    ...readNpmrc(user, env),
    ...(user === join(project, ".npmrc") ? [] : ofProject(readNpmrc(join(project, ".npmrc"), env))),
    ...fromEnv,
  ]);
  const cache = resolve(project, all.get("cache") ?? join(homedir(), ".npm"));
  const registry = all.get("registry") ?? "https://registry.npmjs.org/";
  return { ...fetching(all, project), registry, cache: join(cache, "_cacache"), ...scoped(all), ...fixed };
}

/**
 * Packages run no code while they are fetched or installed, and npm prints nothing. Dependencies of packages must come from a registry:
 * only the project itself may name tarballs and folders, and git repositories are never allowed.
 */
const fixed = {
  ignoreScripts: true,
  audit: false,
  fund: false,
  progress: false,
  npmCommand: "install",
  allowGit: "none",
  allowRemote: "root",
  allowFile: "root",
  allowDirectory: "root",
} as const;

/** A project must not decide where on this machine files are written. */
function ofProject(found: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
  return new Map([...found].filter(([key]) => key !== "cache"));
}

function readNpmrc(file: string, env: NpmPlace["env"]): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  if (!existsSync(file)) return found;
  for (const line of readFileSync(file, "utf8").split(/\r?\n/)) {
    const match = /^\s*([^#;=\s[][^=]*?)\s*(?:=\s*(.*?)\s*)?$/.exec(line);
    if (match === null) continue;
    const [, key = "", value = "true"] = match;
    found.set(expand(key, env), expand(value.replace(/^(["'])(.*)\1$/, "$2"), env));
  }
  return found;
}

/** Expands `${NAME}` from the environment; an unset variable stays as written. */
function expand(text: string, env: NpmPlace["env"]): string {
  return text.replace(/\$\{([^}?]+)(\?)?\}/g, (whole, name: string, isOptional?: string) => env[name] ?? (isOptional ? "" : whole));
}

/** The settings of one registry or scope: `//host/:_authToken`, `@scope:registry`. npm's libraries send them nowhere else. */
function scoped(all: ReadonlyMap<string, string>): Record<string, string> {
  return Object.fromEntries([...all].filter(([key]) => key.startsWith("//") || /^@[^:]+:registry$/.test(key)));
}

function fetching(all: ReadonlyMap<string, string>, project: string): Record<string, unknown> {
  const flag = (key: string): boolean | undefined => (all.has(key) ? all.get(key) !== "false" : undefined);
  const number = (key: string): number | undefined => (Number.isFinite(Number(all.get(key) ?? "x")) ? Number(all.get(key)) : undefined);
  const cafile = all.get("cafile");
  const given = {
    strictSSL: flag("strict-ssl"),
    offline: flag("offline"),
    preferOffline: flag("prefer-offline"),
    preferOnline: flag("prefer-online"),
    legacyPeerDeps: flag("legacy-peer-deps"),
    proxy: all.get("proxy"),
    httpsProxy: all.get("https-proxy"),
    noProxy: all.get("noproxy"),
    ca: cafile === undefined ? all.get("ca") : readFileSync(resolve(project, cafile), "utf8"),
    cert: all.get("cert"),
    key: all.get("key"),
    timeout: number("fetch-timeout"),
    before: all.has("before") ? new Date(all.get("before")!) : undefined,
    defaultTag: all.get("tag"),
    otp: all.get("otp"),
    access: all.get("access"),
    provenance: flag("provenance"),
    userAgent: "skillhost",
  };
  const retry = { retries: number("fetch-retries") ?? 2, minTimeout: number("fetch-retry-mintimeout") ?? 1_000 };
  return { ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)), fetchRetries: retry.retries, retry };
}
