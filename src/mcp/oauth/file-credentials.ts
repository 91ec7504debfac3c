import { chmod, mkdir, readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { sha256 } from "../../base/canonical-json.ts";
import { HostError } from "../../base/errors.ts";
import { type Logger, silentLogger } from "../../base/logger.ts";
import { waitFor } from "../../base/wait.ts";
import { writeFileAtomic } from "../../io/atomic-write.ts";
import { type FileLock, takeFileLock } from "../../io/file-lock.ts";
import { readTextFile } from "../../io/read-bounded.ts";
import { type ClientIdentity, type CredentialStore, type Credentials, type Grant, latestFirst, type ServerKey } from "./credentials.ts";

export interface FileCredentialsOptions {
  /** The user's own folder for credentials. It is created if necessary, readable by the user only. */
  readonly directory: string;
  readonly log?: Logger;
}

/**
 * Credentials that outlive the program: a file for each server and authorization server, readable by the user only. A
 * damaged file counts as absent, is logged by its name alone, and is replaced by the next sign-in.
 */
export function createFileCredentials({ directory, log = silentLogger }: FileCredentialsOptions): CredentialStore {
  return {
    async list(server) {
      const prefix = `${prefixOf(server)}.`;
      const names = (await kept(directory, () => namesIn(directory))).filter((name) => name.startsWith(prefix) && name.endsWith(".json"));
      const found = names.map((name) => ({ name, credentials: load(join(directory, name), server, log) }));
      const honest = found.filter(({ name, credentials }) => credentials && fileNameOf(server, credentials.issuer) === name);
      return latestFirst(honest.map(({ credentials }) => credentials!));
    },
    async exclusively(server, issuer, signal, work) {
      await makePrivate(directory);
      const file = join(directory, fileNameOf(server, issuer));
      const lock = await takeTurn(`${file}.lock`, signal);
      try {
        return await work({
          current: sameIssuer(load(file, server, log), issuer),
          save: (next) => (next === undefined ? rm(file, { force: true }) : store(file, writeCredentials(server, next))),
        });
      } finally {
        lock.release();
      }
    },
  };
}

const maxBytes = 1024 * 1024;
/** An exchange with an authorization server takes a large part of a second, and others wait for it. */
const lookEveryMs = 20;

async function takeTurn(path: string, signal: AbortSignal): Promise<FileLock> {
  for (;;) {
    signal.throwIfAborted();
    const taken = await kept(path, () => takeFileLock(path));
    if (taken.kind === "held") return taken.lock;
    await delay(lookEveryMs, undefined, { signal }).catch(() => signal.throwIfAborted());
  }
}

async function store(file: string, text: string): Promise<void> {
  await kept(file, async () => {
    // Replacing a file keeps its mode, which a user may have opened to others.
    await chmod(file, 0o600).catch(ignoreMissing);
    await writeFileAtomic(file, text, { mode: 0o600 });
  });
}

async function makePrivate(directory: string): Promise<void> {
  await kept(directory, async () => {
    await mkdir(directory, { recursive: true, mode: 0o700 });
    if (((await stat(directory)).mode & 0o077) !== 0 && process.platform !== "win32") await chmod(directory, 0o700);
  });
}

function load(file: string, server: ServerKey, log: Logger): Credentials | undefined {
  const read = readTextFile(file, maxBytes);
  if (!read.ok && read.diagnostic.code === "FILE_MISSING") return undefined;
  const credentials = read.ok ? readCredentials(read.text, server) : undefined;
  if (credentials === undefined)
    log.warning(`Stored credentials of MCP server "${server.name}" cannot be read, so they are not used.`, { file });
  return credentials;
}

/** The file name is a digest of the issuer, so a file with another issuer is ignored. */
function sameIssuer(credentials: Credentials | undefined, issuer: string): Credentials | undefined {
  return credentials?.issuer === issuer ? credentials : undefined;
}

function fileNameOf(server: ServerKey, issuer: string): string {
  return `${prefixOf(server)}.${sha256(issuer).slice(0, 16)}.json`;
}

function prefixOf({ name, url }: ServerKey): string {
  const readable = name.replace(/[^\w-]+/g, "-").slice(0, 40);
  return `${readable}-${sha256(JSON.stringify([name, url])).slice(0, 16)}`;
}

async function namesIn(directory: string): Promise<readonly string[]> {
  try {
    return await readdir(directory);
  } catch (error) {
    ignoreMissing(error);
    return [];
  }
}

function ignoreMissing(error: unknown): void {
  if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
}

/** Explains why the system does not store credentials. */
async function kept<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? "unknown error";
    throw new HostError(
      "OAUTH_STORE",
      `Credentials cannot be stored in ${path} (${code}). Check the owner and permissions of the folder.`,
      {
        cause: error,
      },
    );
  }
}

/** Credentials as a file contains them, with their server. */
function writeCredentials(server: ServerKey, { issuer, registration, grant }: Credentials): string {
  return `${JSON.stringify({ version, server: { name: server.name, url: server.url }, issuer, registration, grant }, undefined, 2)}\n`;
}

/** Undefined: damaged, of another server, or of an unknown version. */
function readCredentials(text: string, server: ServerKey): Credentials | undefined {
  const file = fieldsOf(parse(text));
  const { name, url } = fieldsOf(file["server"]);
  const issuer = textOf(file["issuer"]);
  if (file["version"] !== version || name !== server.name || url !== server.url || issuer === undefined) return undefined;
  const registration = identityOf(file["registration"], issuer);
  const grant = grantOf(file["grant"], issuer);
  return { issuer, ...(registration && { registration }), ...(grant && { grant }) };
}

const version = 1;

function identityOf(value: unknown, issuer: string): ClientIdentity | undefined {
  const fields = fieldsOf(value);
  const clientId = textOf(fields["client_id"]);
  // A client of another authorization server is unknown here.
  if (clientId === undefined || fields["issuer"] !== issuer) return undefined;
  const secret = textOf(fields["client_secret"]);
  const secretEnds = numberOf(fields["client_secret_expires_at"]);
  const method = textOf(fields["token_endpoint_auth_method"]);
  const redirects = fields["redirect_uris"];
  return {
    issuer,
    client_id: clientId,
    ...(secret !== undefined && { client_secret: secret }),
    ...(secretEnds !== undefined && { client_secret_expires_at: secretEnds }),
    ...(method !== undefined && { token_endpoint_auth_method: method }),
    ...(Array.isArray(redirects) && { redirect_uris: redirects.filter((uri) => textOf(uri) !== undefined) }),
  };
}

function grantOf(value: unknown, issuer: string): Grant | undefined {
  const fields = fieldsOf(value);
  const client = identityOf(fields["client"], issuer);
  const accessToken = textOf(fields["accessToken"]);
  if (client === undefined || accessToken === undefined) return undefined;
  return {
    client,
    accessToken,
    refreshToken: textOf(fields["refreshToken"]),
    scope: textOf(fields["scope"]),
    expiresAt: numberOf(fields["expiresAt"]),
    obtainedAt: numberOf(fields["obtainedAt"]) ?? 0,
    resourceMetadataUrl: textOf(fields["resourceMetadataUrl"]),
  };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Damaged: it contains no credentials.
    return undefined;
  }
}

/** The own fields of an object; empty for anything else. */
function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  return Object.assign(Object.create(null), isObject ? value : {});
}

/** The characters allowed in a header or a form. A control character in a token could add a second header. */
function textOf(value: unknown): string | undefined {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for.
  return typeof value === "string" && value !== "" && value.length <= 65_536 && !/[\0-\x1f\x7f]/.test(value) ? value : undefined;
}

function numberOf(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : undefined;
}

/** Credentials that end with the program. */
export function createMemoryCredentials(): CredentialStore {
  const kept = new Map<string, Map<string, Credentials>>();
  const turns = new Map<string, Promise<unknown>>();
  return {
    async list(server) {
      return latestFirst([...(kept.get(keyOf(server))?.values() ?? [])]);
    },
    async exclusively(server, issuer, signal, work) {
      const key = `${keyOf(server)}\n${issuer}`;
      const before = turns.get(key) ?? Promise.resolve();
      const turn = waitFor(before, { signal }).then(() => {
        signal.throwIfAborted();
        return work(entryOf(kept, keyOf(server), issuer));
      });
      // A caller that gives up does not let others pass those before it.
      const done = Promise.allSettled([before, turn]);
      turns.set(key, done);
      try {
        return await turn;
      } finally {
        void done.then(() => turns.get(key) === done && turns.delete(key));
      }
    },
  };
}

function keyOf({ name, url }: ServerKey): string {
  return JSON.stringify([name, url]);
}

function entryOf(kept: Map<string, Map<string, Credentials>>, key: string, issuer: string) {
  return {
    current: kept.get(key)?.get(issuer),
    async save(next: Credentials | undefined) {
      const ofServer = kept.get(key) ?? new Map<string, Credentials>();
      kept.set(key, ofServer);
      if (next === undefined) ofServer.delete(issuer);
      else ofServer.set(issuer, next);
    },
  };
}
