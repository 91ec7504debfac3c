import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { minimalEnvironment } from "../../src/io/process/child-environment.ts";
import { type LaunchRequest, planLaunch } from "../../src/io/process/child-launch.ts";

const env = { Path: "relative;C:\\bin;D:\\tools\\", PATHEXT: ".COM;.EXE;.BAT;.CMD", SystemRoot: "C:\\Windows" };
// Like Windows, this compares file names in lower case.
const files = [
  "c:\\bin\\node.exe",
  "d:\\tools\\npx.cmd",
  "d:\\tools\\node.exe",
  "c:\\work\\own.bat",
  "c:\\work\\npx.cmd",
  "c:\\work\\relative\\x.exe",
  "c:\\bin\\odd%name.cmd",
];
const plan = (command: string, args: readonly string[] = [], more: Partial<LaunchRequest> = {}): ReturnType<typeof planLaunch> =>
  planLaunch({ command, args, cwd: "C:\\work", env, ...more }, "win32", (path) => files.includes(path.toLowerCase()));

describe("the start of programs on Windows", () => {
  test("a program is found by PATH and PATHEXT, the first folder first, and never in the working directory", () => {
    expect(plan("node", ["a b"])).toEqual({ kind: "launch", file: "C:\\bin\\node.EXE", args: ["a b"], verbatim: false });
    expect(plan("node.exe")).toMatchObject({ file: "C:\\bin\\node.exe" });
    expect(plan("npx")).toMatchObject({ file: "C:\\Windows\\System32\\cmd.exe", verbatim: true });
    expect(JSON.stringify(plan("npx"))).toContain("tools");
    expect(plan("own")).toEqual({ kind: "not-found" });
    expect(plan("x")).toEqual({ kind: "not-found" });
    expect(plan(".\\own")).toMatchObject({ kind: "launch" });
    expect(plan("./own.bat")).toMatchObject({ kind: "launch" });
  });

  test("a batch file runs through cmd.exe with every argument quoted", () => {
    expect(plan("npx", ["-y", "a b", "x&calc", "^|<>()!", "C:\\dir\\", ""])).toEqual({
      kind: "launch",
      file: "C:\\Windows\\System32\\cmd.exe",
      args: ["/d", "/s", "/v:off", "/c", '""D:\\tools\\npx.CMD" "-y" "a b" "x&calc" "^|<>()!" "C:\\dir\\\\" """'],
      verbatim: true,
    });
  });

  test.each(['"&calc&"', "%PATH%", "100%", "a\nb", "a\rb", "a\0b"])(
    "an argument that cannot be quoted for cmd.exe is refused: %j",
    (argument) => {
      expect(plan("npx", ["ok", argument])).toMatchObject({ kind: "refused", message: expect.stringContaining("npx.CMD") });
      expect(plan("node", [argument])).toMatchObject({ kind: "launch", args: [argument] });
    },
  );

  test("the name of a batch file that cannot be quoted is refused", () => {
    expect(plan("odd%name")).toMatchObject({ kind: "refused" });
  });

  test("no argument closes its quotes", () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: "binary", maxLength: 12 }), { maxLength: 4 }), (args) => {
        const planned = plan("npx", args);
        if (planned.kind !== "launch") return planned.kind === "refused" && args.some((text) => /[%"\r\n\0]/.test(text));
        const line = planned.args.at(-1) ?? "";
        // Only spaces remain outside the quotes.
        return line
          .slice(1, -1)
          .split('"')
          .filter((_, index) => index % 2 === 0)
          .every((between) => /^ ?$/.test(between));
      }),
    );
  });

  test("on other systems a command is used unchanged", () => {
    const request = { command: "npx", args: ['"&'], cwd: "/", env: {} };
    expect(planLaunch(request, "linux")).toEqual({ kind: "launch", file: "npx", args: ['"&'], verbatim: false });
  });
});

describe("environments of child processes", () => {
  const host = {
    PATH: "/bin",
    HOME: "/home/x",
    LC_ALL: "C",
    TOKEN: "s3cret",
    NODE_OPTIONS: "-r x",
    LD_PRELOAD: "x",
    DYLD_INSERT_LIBRARIES: "x",
    SHELL: "() { :; }",
    TERM: undefined,
  };

  test("the minimal environment has the variables that programs need and no others", () => {
    expect({ ...minimalEnvironment({}, host, "linux") }).toEqual({ PATH: "/bin", HOME: "/home/x", LC_ALL: "C" });
    expect({ ...minimalEnvironment({ TOKEN: "mine", LD_PRELOAD: "asked", PATH: "/own" }, host, "linux") }).toEqual({
      PATH: "/own",
      HOME: "/home/x",
      LC_ALL: "C",
      TOKEN: "mine",
      LD_PRELOAD: "asked",
    });
  });

  test("on Windows the environment has each name once, regardless of case", () => {
    expect({ ...minimalEnvironment({ PATH: "D:\\own" }, { Path: "C:\\bin", SystemRoot: "C:\\Windows", SECRET: "x" }, "win32") }).toEqual({
      PATH: "D:\\own",
      SystemRoot: "C:\\Windows",
    });
  });

  test("variables named like object members are ordinary variables", () => {
    const built = minimalEnvironment(JSON.parse('{"__proto__":"x","constructor":"y"}'), host, "linux");
    expect(Object.keys(built)).toEqual(expect.arrayContaining(["__proto__", "constructor"]));
    expect(Object.getPrototypeOf(built)).toBe(null);
  });
});
