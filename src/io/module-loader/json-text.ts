import { positionAt } from "../../base/diagnostic.ts";
import { errorMessage } from "../../base/errors.ts";
import { ModuleError } from "./module-error.ts";

/** @throws ModuleError `MODULE_SYNTAX`, with the place if the engine tells one */
export function parseJson(file: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const offset = /at position (\d+)/.exec(errorMessage(error))?.[1];
    const position = offset === undefined ? undefined : positionAt(text, Number(offset));
    const message = `${file} is not JSON: ${errorMessage(error)}.`;
    throw new ModuleError("MODULE_SYNTAX", message, { file, position, files: [file], cause: error });
  }
}
