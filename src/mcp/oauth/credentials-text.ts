import type { ClientIdentity, Credentials, Grant, ServerKey } from "./credentials.ts";

/** Credentials as a file holds them, with the server that they are for. */
export function writeCredentials(server: ServerKey, { issuer, registration, grant }: Credentials): string {
  return `${JSON.stringify({ version, server: { name: server.name, url: server.url }, issuer, registration, grant }, undefined, 2)}\n`;
}

/** Undefined: it is none, or one for another server, or of a version that we do not know. */
export function readCredentials(text: string, server: ServerKey): Credentials | undefined {
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
  // A client that another authorization server knows is nobody here.
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
    // Half written by hand, or not ours: it holds no credentials.
    return undefined;
  }
}

/** The own fields of an object; none of anything else. */
function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  return Object.assign(Object.create(null), isObject ? value : {});
}

/** What may stand in a header or a form: control characters in a token would be somebody's attempt at a second header. */
function textOf(value: unknown): string | undefined {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
  return typeof value === "string" && value !== "" && value.length <= 65_536 && !/[\0-\x1f\x7f]/.test(value) ? value : undefined;
}

function numberOf(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : undefined;
}
