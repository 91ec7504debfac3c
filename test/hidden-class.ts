import { setFlagsFromString } from "node:v8";

/**
 * Whether V8 gives two objects one hidden class. Code that reads objects of ever new ones is slow, and making one costs more than
 * the object: a literal that begins with a spread and then adds members makes one each time.
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
