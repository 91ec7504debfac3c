import { setFlagsFromString } from "node:v8";

/**
 * True when V8 gives two objects the same hidden class. Code that reads objects of many hidden classes is slow, and creating a
 * class costs more than the object: a literal that begins with a spread and then adds members creates one each time.
 */
export const haveOneHiddenClass: (one: object, other: object) => boolean = compile();

function compile(): typeof haveOneHiddenClass {
  setFlagsFromString("--allow-natives-syntax");
  try {
    return new Function("one", "other", "return %HaveSameMap(one, other);") as typeof haveOneHiddenClass;
  } finally {
    setFlagsFromString("--no-allow-natives-syntax");
  }
}
