import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { parse } from "ini";

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
  const all = new Map<string, Setting>([
    ...readNpmrc(machine, env),
    ...readNpmrc(user, env),
    ...(user === join(project, ".npmrc") ? [] : ofProject(readNpmrc(join(project, ".npmrc"), env))),
    ...fromEnv,
  ]);
  const cache = resolve(project, text(all, "cache") ?? join(homedir(), ".npm"));
  const registry = text(all, "registry") ?? "https://registry.npmjs.org/";
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
function ofProject(found: ReadonlyMap<string, Setting>): ReadonlyMap<string, Setting> {
  return new Map([...found].filter(([key]) => key !== "cache"));
}

/** A setting as text: `true` for a key without a value. Only certificates are arrays. */
type Setting = string | readonly string[];

/** Reads a file as npm does: top-level keys only, with variables expanded. */
function readNpmrc(file: string, env: NpmPlace["env"]): ReadonlyMap<string, Setting> {
  const found = new Map<string, Setting>();
  if (!existsSync(file)) return found;
  for (const [key, value] of Object.entries(parse(readFileSync(file, "utf8")) as Record<string, unknown>)) {
    if (Array.isArray(value))
      found.set(
        expand(key, env),
        value.map((item) => expand(String(item), env)),
      );
    else if (typeof value === "string" || typeof value === "boolean") found.set(expand(key, env), expand(String(value), env));
  }
  return found;
}

/** Expands `${NAME}` from the environment; an unset variable stays as written. */
function expand(text: string, env: NpmPlace["env"]): string {
  return text.replace(/\$\{([^}?]+)(\?)?\}/g, (whole, name: string, isOptional?: string) => env[name] ?? (isOptional ? "" : whole));
}

/** The settings of one registry or scope: `//host/:_authToken`, `@scope:registry`. npm's libraries send them nowhere else. */
function scoped(all: ReadonlyMap<string, Setting>): Record<string, Setting> {
  return Object.fromEntries([...all].filter(([key]) => key.startsWith("//") || /^@[^:]+:registry$/.test(key)));
}

function text(all: ReadonlyMap<string, Setting>, key: string): string | undefined {
  const value = all.get(key);
  return typeof value === "object" ? value.at(-1) : value;
}

function fetching(all: ReadonlyMap<string, Setting>, project: string): Record<string, unknown> {
  const flag = (key: string): boolean | undefined => (all.has(key) ? text(all, key) !== "false" : undefined);
  const number = (key: string): number | undefined => (Number.isFinite(Number(text(all, key) ?? "x")) ? Number(text(all, key)) : undefined);
  const cafile = text(all, "cafile");
  const given = {
    strictSSL: flag("strict-ssl"),
    offline: flag("offline"),
    preferOffline: flag("prefer-offline"),
    preferOnline: flag("prefer-online"),
    legacyPeerDeps: flag("legacy-peer-deps"),
    proxy: text(all, "proxy"),
    httpsProxy: text(all, "https-proxy"),
    noProxy: text(all, "noproxy"),
    ca: cafile === undefined ? all.get("ca") : readFileSync(resolve(project, cafile), "utf8"),
    cert: text(all, "cert"),
    key: text(all, "key"),
    timeout: number("fetch-timeout"),
    before: all.has("before") ? new Date(text(all, "before")!) : undefined,
    defaultTag: text(all, "tag"),
    otp: text(all, "otp"),
    access: text(all, "access"),
    provenance: flag("provenance"),
    userAgent: "skillhost",
  };
  const retry = { retries: number("fetch-retries") ?? 2, minTimeout: number("fetch-retry-mintimeout") ?? 1_000 };
  return { ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)), fetchRetries: retry.retries, retry };
}
