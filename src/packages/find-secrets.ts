/** A file that must not leave this machine, by its name. */
const secretNames: readonly RegExp[] = [
  /(?:^|\/)\.env(?:\.(?!example$|sample$|template$)[^/]+)?$/i,
  /(?:^|\/)\.(?:npmrc|netrc|pypirc|git-credentials|htpasswd)$/i,
  /(?:^|\/)id_(?:rsa|dsa|ecdsa|ed25519)$/,
  /\.(?:pem|p12|pfx|jks|keystore|kdbx)$/i,
  /(?:^|\/)\.(?:ssh|aws|gnupg|kube|docker)\//,
  /(?:^|\/)(?:service-account|credentials)[^/]*\.json$/i,
];

/** What keys and tokens look like, by those who give them out. */
const secretTexts: readonly (readonly [name: string, pattern: RegExp])[] = [
  ["a private key", /-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----/],
  ["a token of npm", /\bnpm_[A-Za-z0-9]{36}\b/],
  ["a token of GitHub", /\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{60,})\b/],
  ["a key of AWS", /\b(?:AKIA|ASIA)[0-9A-Z]{16}\b/],
  ["a key of OpenAI or Anthropic", /\bsk-(?:ant-|proj-)?[A-Za-z0-9_-]{32,}/],
  ["a token of Slack", /\bxox[abprs]-[0-9A-Za-z-]{20,}/],
  ["a key of Google", /\bAIza[0-9A-Za-z_-]{35}\b/],
  ["a key of Stripe", /\b[rs]k_live_[0-9A-Za-z]{20,}/],
  ["a registry's password", /^\s*\/\/[^\s=]+:_(?:authToken|password|auth)\s*=/m],
];

/** Whether files of that name hold secrets, such as `.env` and `.npmrc`. */
export function isSecretFile(path: string): boolean {
  return secretNames.some((pattern) => pattern.test(path));
}

/** Why a file looks like a secret; undefined: it does not. */
export function findSecret(path: string, bytes: Uint8Array): string | undefined {
  if (isSecretFile(path)) return "files of that name hold secrets";
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1");
  const found = secretTexts.find(([, pattern]) => pattern.test(text));
  return found && `it holds what looks like ${found[0]}`;
}
