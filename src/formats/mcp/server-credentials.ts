import { isRecord } from "../../base/json.ts";
import type { ServerOAuthSpec } from "./mcp-server-spec.ts";
import { type EntryReader, kindOf, shown } from "./server-entry.ts";

type Texts = Readonly<Record<string, string>>;

/** The variables of a local server: those with a value, and those that are passed on by name. */
export function readEnvironment(entry: EntryReader, mode: "direct" | "indirect"): Texts {
  const key = entry.key("env", "environment") ?? "env";
  const env: Record<string, string> = Object.create(null);
  for (const name of entry.names(entry.key("env_vars") ?? "env_vars") ?? []) passOn(name, entry, env);
  for (const [name, value] of entry.filledMap(key, "env") ?? []) {
    if (name === "" || /[=\0]/.test(name))
      entry.error("MCP_ENV_NAME", `${shown(name)} in "${key}" is not a valid variable name.`, [key, name]);
    else if (mode === "indirect") indirect(name, value, entry, env, key);
    else env[name] = value;
  }
  for (const [name, value] of Object.entries(env)) adviseValue(entry, key, name, value);
  return Object.freeze(env);
}

function passOn(name: string, entry: EntryReader, env: Record<string, string>): void {
  const value = entry.environment(name);
  if (value !== undefined) env[name] = value;
  else entry.info("MCP_VARIABLE_UNSET", `Environment variable ${shown(name)}, which is passed to the server, is not set.`, ["env_vars"]);
}

function indirect(name: string, variable: string, entry: EntryReader, env: Record<string, string>, key: string): void {
  const value = entry.environment(variable);
  if (value !== undefined) {
    env[name] = value;
    return;
  }
  // The text may be the secret itself, written in place of a name.
  const message = `"${key}" → ${shown(name)} names an environment variable that the host does not have, so the server does not get it. Set it, or fix the name.`;
  entry.warn("MCP_VARIABLE_UNSET", message, [key, name]);
}

const unfilled = /^(?:\.\.\.|…|<[^<>]+>|(?:YOUR|MY|INSERT|ENTER|REPLACE)[-_ ][\w -]*|x{4,}|changeme)$/i;

/** Whether a value is a placeholder from an example. */
export function isExample(value: string): boolean {
  return value.length < 200 && unfilled.test(value) && !value.includes("${");
}

function adviseValue(entry: EntryReader, key: string, name: string, value: string): void {
  const at = `"${key}" → ${shown(name)}`;
  if (value === "") entry.info("MCP_VALUE_EMPTY", `${at} is empty. Set a value if the server needs one.`, [key, name]);
  else if (isExample(value)) entry.warn("MCP_VALUE_EXAMPLE", `${at} still has a placeholder value. Replace it.`, [key, name]);
}

const headerName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
// Line breaks would begin another header; characters beyond Latin-1 cannot be sent.
// biome-ignore lint/suspicious/noControlCharactersInRegex: the expression detects these
const unsendable = /[\u0000-\u0008\u000a-\u001f\u007f]|[^\u0000-\u00ff]/;

/** The headers of each request to a remote server. */
export function readHeaders(entry: EntryReader): Texts {
  const headers = new Map<string, readonly [string, string]>();
  const add = (name: string, value: string): void => void headers.set(name.toLowerCase(), [name, value]);
  const key = entry.key("headers", "http_headers") ?? "headers";
  for (const [name, value] of entry.filledMap(key, "headers") ?? []) {
    if (!isSendable(name, value, key, entry)) continue;
    adviseValue(entry, key, name, value.replace(/^\S+ /, ""));
    if (value.trim() !== "") add(name, value.trim());
  }
  for (const [name, variable] of entry.filledMap("env_http_headers", "headers") ?? []) {
    const value = entry.environment(variable);
    if (value === undefined)
      entry.warn(
        "MCP_VARIABLE_UNSET",
        `The environment variable ${shown(variable)} is not set, so the header ${shown(name)} is not sent. Set it.`,
        ["env_http_headers", name],
      );
    else if (isSendable(name, value, "env_http_headers", entry)) add(name, value.trim());
  }
  const bearer = readBearer(entry);
  if (bearer !== undefined && isSendable("Authorization", bearer, "bearer_token_env_var", entry)) add("Authorization", bearer);
  const all: Record<string, string> = Object.create(null);
  for (const [name, value] of headers.values()) all[name] = value;
  return Object.freeze(all);
}

function isSendable(name: string, value: string, key: string, entry: EntryReader): boolean {
  if (!headerName.test(name)) entry.error("MCP_HEADER", `${shown(name)} in "${key}" is not a valid header name.`, [key, name]);
  else if (unsendable.test(value.trim()))
    entry.error(
      "MCP_HEADER",
      `"${key}" → ${shown(name)} contains a line break or another character that is not allowed in a header. Remove it.`,
      [key, name],
    );
  else return true;
  return false;
}

function readBearer(entry: EntryReader): string | undefined {
  const name = entry.text("bearer_token_env_var");
  if (name === undefined) return undefined;
  const token = entry.environment(name)?.trim();
  if (token) return `Bearer ${token}`;
  entry.need(`Environment variable ${shown(name)}, which holds its token, is not set. Set it.`);
  return undefined;
}

/** The OAuth settings of the entry. */
export function readOAuth(entry: EntryReader): ServerOAuthSpec | undefined {
  const value = entry.raw("oauth");
  const resource = entry.text("oauth_resource");
  if (value !== undefined && typeof value !== "boolean" && !isRecord(value))
    return entry.error("MCP_FIELD_TYPE", `"oauth" must be an object, not ${kindOf(value)}.`, ["oauth"]);
  const own = isRecord(value) ? readOAuthFields(value, entry) : {};
  const oauth = { ...own, ...(resource !== undefined && { resource }) };
  return isRecord(value) || Object.keys(oauth).length > 0 ? Object.freeze(oauth) : undefined;
}

function readOAuthFields(value: Readonly<Record<string, unknown>>, entry: EntryReader): ServerOAuthSpec {
  const first = (...keys: readonly string[]): unknown =>
    keys.map((key) => (Object.hasOwn(value, key) ? value[key] : undefined)).find((found) => found != null);
  const text = (...keys: readonly string[]): string | undefined => {
    const found = first(...keys);
    if (found === undefined || (typeof found === "string" && found !== "" && !found.includes("\0"))) return found as string | undefined;
    return entry.error("MCP_FIELD_TYPE", `"oauth" → "${keys[0]}" must be a non-empty string.`, ["oauth"]);
  };
  const fields = {
    clientId: text("clientId", "client_id"),
    clientSecret: text("clientSecret", "client_secret"),
    scopes: readScopes(first("scopes", "scope"), entry),
    callbackPort: readPort(first("callbackPort", "callback_port"), entry),
    resource: text("resource"),
    issuer: text("issuer"),
    clientMetadataUrl: readDocumentUrl(text("clientMetadataUrl", "client_metadata_url"), entry),
    grantType: readGrantType(first("grantType", "grant_type"), entry),
  };
  return Object.fromEntries(Object.entries(fields).filter(([, field]) => field !== undefined));
}

function readScopes(value: unknown, entry: EntryReader): readonly string[] | undefined {
  if (value === undefined) return undefined;
  const scopes = typeof value === "string" ? value.split(/\s+/).filter((scope) => scope !== "") : value;
  // RFC 6749, section 3.3.
  if (Array.isArray(scopes) && scopes.every((scope) => typeof scope === "string" && /^[\x21\x23-\x5b\x5d-\x7e]+$/.test(scope)))
    return Object.freeze(scopes as string[]);
  return entry.error("MCP_FIELD_TYPE", '"oauth" → "scopes" must be an array of scopes, or a string with spaces between them.', ["oauth"]);
}

/** The URL of the metadata document that an authorization server fetches to identify this client. */
function readDocumentUrl(value: string | undefined, entry: EntryReader): string | undefined {
  const url = value !== undefined && URL.canParse(value) ? new URL(value) : undefined;
  if (value === undefined || (url?.protocol === "https:" && url.pathname !== "/")) return value;
  return entry.error("MCP_FIELD_TYPE", '"oauth" → "clientMetadataUrl" must be the https URL of a document.', ["oauth"]);
}

function readGrantType(value: unknown, entry: EntryReader): ServerOAuthSpec["grantType"] {
  if (value === undefined || value === "authorization_code" || value === "client_credentials") return value;
  return entry.error("MCP_FIELD_TYPE", '"oauth" → "grantType" must be "authorization_code" or "client_credentials".', ["oauth"]);
}

function readPort(value: unknown, entry: EntryReader): number | undefined {
  if (value === undefined || (Number.isInteger(value) && (value as number) > 0 && (value as number) < 65_536))
    return value as number | undefined;
  return entry.error("MCP_FIELD_TYPE", '"oauth" → "callbackPort" must be a port number from 1 to 65535.', ["oauth"]);
}
