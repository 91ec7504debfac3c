import { setFlagsFromString } from "node:v8";

/**
 * True when V8 gives two objects the same hidden class. Code that reads objects of many hidden classes is slow, and creating a
 * class costs more than the object: a literal that begins with a spread and then adds members creates one each time.
 */
export function haveOneHiddenClass(one: object, other: object): boolean {
  setFlagsFromString("--allow-natives-syntax");
  try {
    // V8 may discard what it compiled and parse the text again, so the function must not outlive the flag.
    return new Function("one", "other", "return %HaveSameMap(one, other);")(one, other) as boolean;
  } finally {
    setFlagsFromString("--no-allow-natives-syntax");
  }
}
