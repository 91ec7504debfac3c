import type { Command } from "commander";
import type { KeyOptions } from "../commands/keys.ts";
import type { PolicyOptions } from "../commands/policy-settings.ts";
import type { SignOptions } from "../commands/sign.ts";
import type { TrustLogOptions } from "../commands/trust-log.ts";
import type { Choose } from "./choose.ts";
import { count } from "./option-values.ts";

/** The commands about trusted folders and keys. */
export function addTrustCommands(program: Command, choose: Choose): void {
  program
    .command("sign")
    .summary("sign a skill so that others can verify that it is unchanged")
    .description(
      "Loads a skill, and signs its files and tool definitions with your key. The signature is written to skill.sig.json in the skill's folder.",
    )
    .argument("<skill>", "the skill's folder or name")
    .option("--key <key>", "id or name of the key to sign with; required if you have several")
    .option("--expires <when>", "when the signature expires, such as 90d or 2030-01-31 (default: never)")
    .option("--passphrase-file <file>", "file with the key's passphrase (default: SKILLHOST_KEY_PASSPHRASE)")
    .action((skill: string, options: SignOptions) =>
      choose("sign", async (context) => (await import("../commands/sign.ts")).sign(context, skill, options), {}),
    );
  const trust = program.command("trust").description("manage the folders whose code may run, and your policy");
  addFolderCommands(trust, choose);
  addPolicyCommands(trust.command("policy").description("manage what must be signed, and which packages may be installed"), choose);
  trust
    .command("log")
    .description("list what you approved: folders, keys, packages, tools and settings")
    .option("--last <count>", "only the newest", count)
    .action((options: TrustLogOptions) =>
      choose("trust log", async (context) => (await import("../commands/trust-log.ts")).trustLog(context, options)),
    );
  addKeyCommands(program.command("keys").description("manage signing keys: yours, and the ones you trust"), choose);
}

function addFolderCommands(trust: Command, choose: Choose): void {
  const load = () => import("../commands/trust-folders.ts");
  trust
    .command("add")
    .description("trust a folder: its code and that of all folders below it may run")
    .argument("[folder]", "the folder (default: the root of the current repository, else the current directory)")
    .action((folder: string | undefined) => choose("trust add", async (context) => (await load()).trustFolder(context, folder)));
  trust
    .command("list")
    .description("list the folders that you trust")
    .action(() => choose("trust list", async (context) => (await load()).listFolders(context)));
  trust
    .command("remove")
    .description("stop trusting a folder")
    .argument("[folder]", "the folder, as listed by trust list (default: as for add)")
    .action((folder: string | undefined) => choose("trust remove", async (context) => (await load()).distrustFolder(context, folder)));
}

function addPolicyCommands(policy: Command, choose: Choose): void {
  const load = () => import("../commands/policy-settings.ts");
  policy
    .command("show")
    .description("show what is required, and by whom: your organisation, you, this project")
    .action(() => choose("trust policy show", async (context) => (await load()).showPolicy(context)));
  policy
    .command("set")
    .description("change a setting of your policy; the value default takes it back")
    .argument("<setting>", "policy[.<scope>], definitions[.<scope>] or provenance.<package>")
    .argument("<value>", "off, warn, first-use or require, as the setting has it; or default")
    .option("--repository <url>", "where the package must be built from; for provenance")
    .option("--workflow <path>", "the workflow that must have built it; for provenance")
    .action((setting: string, value: string, options: PolicyOptions) =>
      choose("trust policy set", async (context) => (await load()).setPolicy(context, setting, value, options)),
    );
  policy
    .command("allow")
    .description("allow packages by name or pattern, or by the address that they come from; all others are denied then")
    .argument("<what...>", "such as @acme/* or https://npm.acme.com/")
    .action((what: string[]) => choose("trust policy allow", async (context) => (await load()).allow(context, what)));
  policy
    .command("deny")
    .description("deny packages by name or pattern, or take back an address that was allowed")
    .argument("<what...>", "such as left-pad or https://npm.acme.com/")
    .action((what: string[]) => choose("trust policy deny", async (context) => (await load()).deny(context, what)));
}

function addKeyCommands(keys: Command, choose: Choose): void {
  const load = () => import("../commands/keys.ts");
  keys
    .command("list")
    .description("list your keys, trusted keys and revoked keys")
    .action(() => choose("keys list", async (context) => (await load()).listKeys(context)));
  keys
    .command("new")
    .description("create a key pair for signing, and trust it")
    .argument("[name]", "the owner, such as an email address")
    .option("--passphrase-file <file>", "encrypt it with the passphrase in this file (default: SKILLHOST_KEY_PASSPHRASE, if set)")
    .action((name: string | undefined, options: KeyOptions) =>
      choose("keys new", async (context) => (await load()).newKey(context, name, options)),
    );
  keys
    .command("trust")
    .description("trust a key: accept what is signed with it")
    .argument("<key...>", 'the key, as "skillhost keys export" prints it, or a file with keys')
    .action((key: string[]) => choose("keys trust", async (context) => (await load()).trustKeys(context, key.join(" "))));
  keys
    .command("revoke")
    .description("revoke a key: reject everything that was ever signed with it")
    .argument("<key>", "the key's id or name")
    .option("--reason <text>", "the reason, shown to users who meet a signature by this key")
    .action((key: string, options: KeyOptions) =>
      choose("keys revoke", async (context) => (await load()).revokeKey(context, key, options)),
    );
  keys
    .command("export")
    .description("print a public key, for others to trust")
    .argument("[key]", "the key's id or name; required if you have several")
    .action((key: string | undefined) => choose("keys export", async (context) => (await load()).exportKey(context, key)));
}
