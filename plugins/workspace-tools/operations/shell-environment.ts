import { statSync } from "node:fs";
import { delimiter, join } from "node:path";

type Variables = Readonly<Record<string, string | undefined>>;

/**
 * The environment of commands: an allow list, because a model reads what a command prints. It contains what programs need
 * to run and what configures tool chains. A listed variable is omitted when its name or value looks like a credential.
 * `names`: variables that the configuration adds, which are not checked. Programs that the host starts get less: see
 * `src/io/process/child-environment.ts`.
 */
export function shellEnvironment(host: Variables = process.env, names: readonly string[] = []): Record<string, string> {
  const added = new Set(names.map(keyOf));
  const environment: Record<string, string> = Object.create(null);
  for (const [name, value] of Object.entries(host)) {
    // "() {" is a shell function in disguise.
    if (value === undefined || value.startsWith("()")) continue;
    if (added.has(keyOf(name)) || isHarmless(keyOf(name), value)) environment[name] = value;
  }
  // There is no user to page through output or to see colours.
  return Object.assign(environment, { PAGER: "cat", GIT_PAGER: "cat", GIT_TERMINAL_PROMPT: "0", TERM: "dumb" });
}

function keyOf(name: string): string {
  return process.platform === "win32" ? name.toUpperCase() : name;
}

function isHarmless(name: string, value: string): boolean {
  if (basics.has(name)) return true;
  return (toolChains.has(name) || families.test(name)) && !isLoader(name) && !isSecretName(name) && !isSecretValue(value);
}

/** What every program needs. The values are paths and languages, so they are not checked for credentials. */
const basics: ReadonlySet<string> = new Set(
  [
    "PATH HOME USER LOGNAME SHELL PWD LANG LANGUAGE TZ TMPDIR TMP TEMP TERM HOSTNAME",
    // Windows
    "PATHEXT COMSPEC SYSTEMROOT SYSTEMDRIVE WINDIR USERPROFILE USERNAME HOMEDRIVE HOMEPATH APPDATA LOCALAPPDATA PROGRAMDATA",
    "PROGRAMFILES PROGRAMFILES(X86) PROGRAMW6432 COMMONPROGRAMFILES PROCESSOR_ARCHITECTURE NUMBER_OF_PROCESSORS OS PUBLIC",
  ].flatMap((line) => line.split(" ")),
);

/** Variables that configure tool chains and the desktop. */
const toolChains: ReadonlySet<string> = new Set(
  [
    "CI EDITOR VISUAL DISPLAY WAYLAND_DISPLAY XAUTHORITY SSH_AUTH_SOCK GPG_TTY NO_COLOR FORCE_COLOR COLUMNS LINES UMASK",
    "HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY http_proxy https_proxy all_proxy no_proxy",
    "SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE CURL_CA_BUNDLE GIT_SSL_CAINFO NIX_SSL_CERT_FILE",
    "CC CXX AR LD CFLAGS CXXFLAGS CPPFLAGS LDFLAGS MAKEFLAGS PKG_CONFIG PKG_CONFIG_PATH CPATH C_INCLUDE_PATH CPLUS_INCLUDE_PATH LIBRARY_PATH",
    "JAVA_HOME JDK_HOME JRE_HOME M2_HOME MAVEN_HOME MAVEN_OPTS GRADLE_HOME GRADLE_USER_HOME GRADLE_OPTS KOTLIN_HOME SCALA_HOME SDKMAN_DIR",
    "ANDROID_HOME ANDROID_SDK_ROOT ANDROID_NDK_HOME VIRTUAL_ENV PYTHONPATH PYTHONHOME PYTHONUNBUFFERED PYTHONIOENCODING PYTHONUTF8",
    "PYTHONDONTWRITEBYTECODE PYTHONPYCACHEPREFIX PYTHONHASHSEED PYTHONWARNINGS POETRY_HOME PIPX_HOME PNPM_HOME BUN_INSTALL DENO_DIR",
    "DENO_INSTALL VOLTA_HOME GEM_HOME GEM_PATH BUNDLE_PATH BUNDLE_GEMFILE COMPOSER_HOME DOTNET_ROOT DOTNET_CLI_HOME NUGET_PACKAGES",
    "GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL NIX_PATH NIX_PROFILES MANPATH INFOPATH ELECTRON_RUN_AS_NODE",
  ].flatMap((line) => line.split(" ")),
);

/** The same, by common prefixes. */
const families =
  /^(?:LC|XDG|NODE|NVM|FNM|COREPACK|YARN|PLAYWRIGHT|PUPPETEER|CONDA|MAMBA|PYENV|PIP|UV|CARGO|RUSTUP|RUSTC|RUST|GO|CGO|RBENV|ASDF|MISE|HOMEBREW|CMAKE|WSL)_|^(?:RUSTFLAGS|RUSTDOCFLAGS|GOPATH|GOROOT|GOBIN|GOPROXY|GOFLAGS|GOCACHE|GOMODCACHE|GOOS|GOARCH|GOTOOLCHAIN|GOWORK|GOMAXPROCS|GOPRIVATE|GONOPROXY|GONOSUMDB|GONOSUMCHECK|GO111MODULE)$|^npm_config_/i;

/** Variables that make a program load code or connect to the host. */
function isLoader(name: string): boolean {
  return /^(?:NODE_OPTIONS|NODE_CHANNEL_FD|NODE_CHANNEL_SERIALIZATION_MODE|NODE_REPL_EXTERNAL_MODULE|npm_config_node_options)$/i.test(name);
}

function isSecretName(name: string): boolean {
  const secret = /TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|APIKEY|AUTH|COOKIE|(?:^|_)(?:PASS|PAT|KEY|KEYS|DSN|JWT|OTP|PIN|CERT)(?:_|$)/i;
  return (
    secret.test(name) && !/^(?:SSH_AUTH_SOCK|XAUTHORITY|GIT_AUTHOR_(?:NAME|EMAIL)|SSL_CERT_(?:FILE|DIR)|NIX_SSL_CERT_FILE)$/i.test(name)
  );
}

/** Credentials in the formats of their issuers, and URLs that contain one. */
function isSecretValue(value: string): boolean {
  return (
    /[a-z][a-z0-9+.-]*:\/\/[^\s/?#@]*@/i.test(value) ||
    /-----BEGIN |\beyJ[\w-]{8,}\.[\w-]+\.|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bAIza[\w-]{30}/.test(value) ||
    /\b(?:sk|pk|rk)[-_](?:live|test|ant|proj)[-_]|\bsk-[\w-]{20}|\b(?:gh[pousr]_|github_pat_|glpat-|npm_|hf_|xox[abeprs]-|whsec_)[\w-]{10}/.test(
      value,
    ) ||
    /\b(?:password|passwd|pwd|secret|token|api[_-]?key|accountkey|sharedaccesskey)\s*=/i.test(value) ||
    /https:\/\/hooks\.|\/api\/webhooks\//i.test(value)
  );
}

/** The path of bash on this machine. Undefined: not installed. */
export function findBash(path: string | undefined = process.env["PATH"]): string | undefined {
  const name = process.platform === "win32" ? "bash.exe" : "bash";
  const folders = [...(path ?? "").split(delimiter), ...(process.platform === "win32" ? [] : ["/bin", "/usr/bin", "/usr/local/bin"])];
  return folders
    .filter((folder) => folder !== "" && !isWindowsStub(folder))
    .map((folder) => join(folder, name))
    .find((file) => statSync(file, { throwIfNoEntry: false })?.isFile() === true);
}

/** The bash of Windows itself starts a virtual machine, which has different paths. */
function isWindowsStub(folder: string): boolean {
  return process.platform === "win32" && /\\(system32|windowsapps)\\?$/i.test(folder);
}
