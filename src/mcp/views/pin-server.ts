import { isSecretName } from "../../base/logger.ts";
import type { McpServerSpec } from "../../formats/mcp/mcp-server-spec.ts";
import { digestOf } from "../../trust/folder-digests.ts";
import { ownerId } from "../../trust/pins/seen-pins.ts";
import type { SupervisedServer } from "../supervisor/lease.ts";

/**
 * Whose definitions they are, whatever else the configuration says: the server's name, and which code or address is behind it.
 * That is decided by the command, its arguments, the real folder that it runs in, and the variables that make it load
 * other code. Other values of the environment and headers are left out: they hold secrets and are renewed, and neither should get
 * into what is kept or make the same server another one.
 */
export function pinOwner(server: Pick<SupervisedServer, "spec" | "resolvedSpec">): string {
  const { spec } = server;
  const resolvedSpec = server.resolvedSpec ?? spec;
  if ("reason" in resolvedSpec) return ownerId(spec.name, []);
  if (resolvedSpec.type !== "stdio") return ownerId(spec.name, [resolvedSpec.url]);
  const { command, args, cwd, env } = resolvedSpec;
  return ownerId(spec.name, [command, args, cwd ?? "", codeVariables(env)]);
}

/** Under what earlier versions kept the pins of a local server: by its command, and the folder as it was written. Undefined: under nothing else. */
export function formerPinOwner({ spec }: Pick<SupervisedServer, "spec">): string | undefined {
  if ("reason" in spec || spec.type !== "stdio") return undefined;
  return ownerId(spec.name, [spec.command, spec.args, spec.cwd ?? ""]);
}

// Variables by which loaders, interpreters and package managers choose what they load, and from where.
const codeVariable = new RegExp(
  `^(?:${[
    "PATH|PATHEXT|HOME|USERPROFILE|XDG_CONFIG_HOME|XDG_DATA_HOME|APPDATA|LOCALAPPDATA",
    "LD_.*|DYLD_.*|GCONV_PATH|BASH_ENV|ENV|ZDOTDIR|SHELL|COMSPEC|BASH_FUNC_.*",
    "NODE_OPTIONS|NODE_PATH|NPM_CONFIG_.*|YARN_.*|PNPM_.*|BUN_.*|DENO_.*|TSX_.*|TS_NODE_.*",
    "PYTHON.*|VIRTUAL_ENV|PIP_.*|UV_.*|PIPX_.*|CONDA_.*",
    "RUBYOPT|RUBYLIB|GEM_.*|BUNDLE_.*|PERL5.*|PERLLIB|PHPRC|PHP_INI_SCAN_DIR|LUA_.*",
    "JAVA_.*|_JAVA_OPTIONS|JDK_.*|CLASSPATH|DOTNET_.*|COR_.*|CORECLR_.*|GOPATH|GOROOT|GOBIN|GOPROXY|GOFLAGS|GOENV|GOTOOLCHAIN|CARGO_.*|RUSTC.*|RUSTUP_.*|RUSTFLAGS|GIT_.*|DOCKER_.*|KUBECONFIG",
  ].join("|")})$`,
  "i",
);

function codeVariables(env: Readonly<Record<string, string>>): readonly (readonly [string, string])[] {
  return Object.entries(env)
    .filter(([name]) => codeVariable.test(name) && !isSecretName(name))
    .sort(([a], [b]) => (a < b ? -1 : Number(a > b)));
}

/**
 * What approvals of a server's tools are bound to: how it is started or reached, with the environment and the headers,
 * since these can make another program of the same command. Of what is named like a secret only the name counts: a
 * renewed token must not ask everything again.
 */
export function serverIdentity(spec: McpServerSpec): string {
  if (spec.type !== "stdio") return digestOf({ url: spec.url, headers: withoutSecrets(spec.headers, (name) => name.toLowerCase()) });
  const { command, args, cwd = "", env } = spec;
  return digestOf({ command, args, cwd, env: withoutSecrets(env, (name) => name) });
}

function withoutSecrets(values: Readonly<Record<string, string>>, named: (name: string) => string): readonly (readonly string[])[] {
  const entries = Object.entries(values).map(([name, value]) => (isSecretName(name) ? [named(name)] : [named(name), value]));
  return entries.sort(([a = ""], [b = ""]) => (a < b ? -1 : Number(a > b)));
}
