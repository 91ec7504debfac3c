import type { Command } from "commander";
import type { KeyOptions } from "./commands/keys.ts";
import type { SignOptions } from "./commands/sign.ts";
import type { Choose } from "./program.ts";

/** The commands about whose skills are believed. */
export function addTrust(program: Command, choose: Choose): void {
  program
    .command("sign")
    .summary("sign a skill so that others can verify that it is unchanged")
    .description(
      "Loads a skill, and signs its files and the definitions of its tools with your key. The signature is skill.sig.json in its folder.",
    )
    .argument("<skill>", "its folder, or its name")
    .option("--key <key>", "which of your keys, by its id or name; needed when there are several")
    .option("--expires <when>", "until when it is good, such as 90d or 2030-01-31 (default: for ever)")
    .option("--passphrase-file <file>", "a file that holds the key's passphrase (default: SKILLHOST_KEY_PASSPHRASE)")
    .action((skill: string, options: SignOptions) =>
      choose("sign", async (context) => (await import("./commands/sign.ts")).sign(context, skill, options), {}),
    );
  addFolders(program.command("trust").description("the folders whose code may run"), choose);
  addKeys(program.command("keys").description("your keys, and those of others that you trust"), choose);
}

function addFolders(trust: Command, choose: Choose): void {
  const load = () => import("./commands/trust-folders.ts");
  trust
    .command("add")
    .description("let the code of a folder, and of everything below it, run from now on")
    .argument("[folder]", "the folder (default: the top of the checkout that you are in, or where you are)")
    .action((folder: string | undefined) => choose("trust add", async (context) => (await load()).trustFolder(context, folder)));
  trust
    .command("list")
    .description("list the folders that you trust")
    .action(() => choose("trust list", async (context) => (await load()).listFolders(context)));
  trust
    .command("remove")
    .description("trust a folder no longer")
    .argument("[folder]", "the folder, as listed (default: as for add)")
    .action((folder: string | undefined) => choose("trust remove", async (context) => (await load()).distrustFolder(context, folder)));
}

function addKeys(keys: Command, choose: Choose): void {
  const load = () => import("./commands/keys.ts");
  keys
    .command("list")
    .description("list your keys, those that you trust, and those that were revoked")
    .action(() => choose("keys list", async (context) => (await load()).listKeys(context)));
  keys
    .command("new")
    .description("make a key pair to sign with, and trust it yourself")
    .argument("[name]", "whose it is, such as an address of e-mail")
    .option("--passphrase-file <file>", "encrypt it with the passphrase in this file (default: SKILLHOST_KEY_PASSPHRASE, if there is one)")
    .action((name: string | undefined, options: KeyOptions) =>
      choose("keys new", async (context) => (await load()).newKey(context, name, options)),
    );
  keys
    .command("trust")
    .description("trust what is signed with a key from now on")
    .argument("<key...>", 'the key, as "skillhost keys export" prints it, or a file of keys')
    .action((key: string[]) => choose("keys trust", async (context) => (await load()).trustKeys(context, key.join(" "))));
  keys
    .command("revoke")
    .description("trust a key no more, and nothing that was ever signed with it")
    .argument("<key>", "its id, or its name")
    .option("--reason <text>", "the reason, shown to users who meet a signature by this key")
    .action((key: string, options: KeyOptions) =>
      choose("keys revoke", async (context) => (await load()).revokeKey(context, key, options)),
    );
  keys
    .command("export")
    .description("print the public part of a key, for others to trust")
    .argument("[key]", "its id, or its name; needed when there are several")
    .action((key: string | undefined) => choose("keys export", async (context) => (await load()).exportKey(context, key)));
}
