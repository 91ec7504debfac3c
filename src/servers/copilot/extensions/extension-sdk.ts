import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { statFile } from "../../../io/module-loader/read-source.ts";

/** What extensions import, wherever it is. */
const sdkName = "@github/copilot-sdk";

/**
 * The folder with the modules of the Copilot SDK (`index.js`, `extension.js`) for an extension: the first of those that were
 * named in which there is one, else the SDK that is installed for the extension or for the working directory. `workingDirectory`
 * undefined: it is not trusted.
 */
export function findSdk(
  named: readonly (string | undefined)[],
  extension: string,
  workingDirectory: string | undefined,
): string | undefined {
  const folders = named.filter((folder) => folder !== undefined).flatMap((folder) => [folder, join(folder, "dist")]);
  return (
    folders.find(isSdk) ?? installedFor(dirname(extension)) ?? (workingDirectory === undefined ? undefined : installedFor(workingDirectory))
  );
}

function isSdk(folder: string): boolean {
  return ["index.js", "extension.js"].every((name) => statFile(join(folder, name))?.isFile() === true);
}

function installedFor(folder: string): string | undefined {
  for (let at = folder; ; at = dirname(at)) {
    const sdk = join(at, "node_modules", sdkName, "dist");
    if (isSdk(sdk)) return sdk;
    if (dirname(at) === at) return undefined;
  }
}

/** Arguments for Node.js with which the SDK's name leads to a folder, from wherever it is imported. */
export function nodeArguments(sdk: string): readonly string[] {
  const addresses = { [sdkName]: addressOf(sdk, "index.js"), [`${sdkName}/extension`]: addressOf(sdk, "extension.js") };
  const hooks = `const addresses = ${JSON.stringify(addresses)};
export const resolve = (specifier, context, next) =>
  Object.hasOwn(addresses, specifier) ? { url: addresses[specifier], shortCircuit: true } : next(specifier, context);`;
  return ["--import", toData(`import { register } from "node:module"; register(${JSON.stringify(toData(hooks))});`)];
}

function addressOf(folder: string, name: string): string {
  return pathToFileURL(join(folder, name)).href;
}

function toData(code: string): string {
  return `data:text/javascript,${encodeURIComponent(code)}`;
}
