import { generateKeyPairSync } from "node:crypto";
import { join } from "node:path";
import { testSkill } from "skillhost/testing";
import { type Signed, type SigningKey, type SignRequest, signFolder } from "../../../src/trust/skill-signature.ts";
import type { TrustOptions } from "../../../src/trust/trust-settings.ts";
import { formatKey, publicKeyOf } from "../../../src/trust/trusted-keys.ts";
import { type Files, skillMd, tempFolder, toolSource } from "../../skills/kit.ts";

/** A key pair that lives in memory. */
export function makeKey(name = "alice@example.com"): SigningKey & { readonly text: string } {
  const { privateKey } = generateKeyPairSync("ed25519");
  const publicKey = publicKeyOf(privateKey, name);
  return { publicKey, privateKey, text: formatKey(publicKey) };
}

/** A skill with a module, a helper of it, a tool that is JSON, a prompt and a file that nothing loads. */
export function greeterFiles(says = '"hello"'): Files {
  return {
    "SKILL.md": skillMd("greeter"),
    "skill.json": '{ "name": "greeter", "version": "1.0.0" }',
    "prompts/style.md": "Be kind.\n",
    "tools/greet.ts": toolSource("greet", "words()", 'import { words } from "./_words.ts";'),
    "tools/_words.ts": `export const words = () => ${says};\n`,
    "tools/wave.json": '{ "name": "wave", "description": "Waves.", "handler": { "module": "_wave.ts" } }',
    // Not all of it is UTF-8: other bytes here are the same text once they are decoded.
    "tools/_wave.ts": Buffer.concat([Buffer.from('export default () => "waves"; // '), Buffer.from([250])]),
    "assets/logo.bin": new Uint8Array([1, 2, 3, 250]),
  };
}

const plainGreeter: Files = greeterFiles();

const greeter: Partial<SignRequest> = { skill: "greeter", version: "1.0.0" };

/** A folder of skills with the signed greeter in it. */
export async function signedGreeter(
  key: SigningKey,
  files: Files = greeterFiles(),
): Promise<{ readonly root: string; readonly folder: string }> {
  const root = tempFolder(Object.fromEntries(Object.entries(files).map(([path, text]) => [`greeter/${path}`, text])));
  const folder = join(root, "greeter");
  if (files === plainGreeter) greeterTools ??= toolsOf(folder);
  const tools = files === plainGreeter ? await greeterTools : undefined;
  await resign(folder, key, { ...(tools && { tools }) });
  return { root, folder };
}

/** Signs a folder as `skillhost sign` does: with the contracts of the tools that it has when it is loaded. */
export async function resign(folder: string, key: SigningKey, request: Partial<SignRequest> = {}): Promise<Extract<Signed, { ok: true }>> {
  const signed = await signFolder(
    folder,
    { ...greeter, tools: request.tools ?? (await toolsOf(folder)), created: new Date(), ...request } as SignRequest,
    key,
  );
  if (!signed.ok) throw new Error(JSON.stringify(signed.problems));
  return signed;
}

async function toolsOf(folder: string): Promise<ReadonlyMap<string, string>> {
  await using kit = await testSkill(folder);
  return new Map(kit.session.listTools().map(({ name, signature }) => [name, signature]));
}

// Most tests sign the same tools; finding out their contracts takes longer than all else.
let greeterTools: Promise<ReadonlyMap<string, string>> | undefined;

export function requireOf(...keys: readonly { readonly text: string }[]): TrustOptions {
  return { policy: { project: "require" }, keys: keys.map(({ text }) => text) };
}
