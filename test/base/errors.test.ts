import { expect, test } from "vitest";
import { errorMessage, HostError, toError } from "../../src/base/errors.ts";

test("a host error carries its code and its cause", () => {
  const cause = new Error("below");
  expect(new HostError("SESSION_CLOSED", "It is closed.", { cause })).toMatchObject({
    code: "SESSION_CLOSED",
    message: "It is closed.",
    cause,
  });
});

test("whatever is thrown becomes an error with a readable message", () => {
  const hostile = {
    toString() {
      throw new Error("no");
    },
  };
  const getter = Object.defineProperty(new Error(), "message", {
    get() {
      throw new Error("no");
    },
  });
  expect([toError("text").message, toError(undefined).message, toError(hostile).message, errorMessage(getter)]).toEqual([
    "text",
    "A value that is not an Error was thrown: undefined",
    "A value that cannot be shown was thrown.",
    "An error whose message cannot be read.",
  ]);
});
