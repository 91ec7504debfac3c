import { renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { type Files, put, toolSource } from "../../skills/kit.ts";
import { makeKey, requireOf, resign } from "../../trust/signatures/signing-kit.ts";
import { noPython, openPythonSkill, type PythonSkill } from "./python-kit.ts";

const alice = makeKey();

const helper = 'def words():\n    return "good"\n';
const evil = 'def words():\n    return "evil"\n';
const python: Files = {
  "tools/greet.py": `from skillhost import define_tool
from _words import words
from pkg.names import name

@define_tool(description="Greets.", parameters={"type": "object", "properties": {}})
def greet() -> str:
    return f"{words()} {name()}"

@define_tool(description="Greets later.", parameters={"type": "object", "properties": {}})
def greet_late() -> str:
    import _late
    return _late.words()
`,
  "tools/_words.py": helper,
  "tools/_late.py": helper,
  "pkg/names.py": "from . import _inner\n\ndef name():\n    return _inner.name\n",
  "pkg/_inner.py": 'name = "Ada"\n',
};

/** Names what the first module of the skill does to its folder when it is loaded, after the check. */
type Swaps = { swaps?: (folder: string) => void };

afterEach(() => {
  delete (globalThis as Swaps).swaps;
});

async function openSigned(swaps?: (folder: string) => void, files: Files = python): Promise<PythonSkill> {
  const first = toolSource(
    "first",
    '"first"',
    'import { fileURLToPath } from "node:url"; globalThis.swaps?.(fileURLToPath(new URL("..", import.meta.url)));',
  );
  return openPythonSkill(
    {
      "skill.json": '{ "name": "py", "version": "1.0.0" }',
      "SKILL.md": "---\nname: py\ndescription: For a test.\n---\nHi.\n",
      "tools/a_first.ts": first,
      ...files,
    },
    {
      trust: requireOf(alice),
      async prepare(folder) {
        const unsigned = await openPythonSkill({ "tools/a_first.ts": first, ...files });
        const tools = new Map(unsigned.session.listTools().map(({ name, signature }) => [name, signature]));
        await unsigned.host.close();
        await resign(folder, alice, { skill: "py", tools });
        Object.assign(globalThis, { swaps });
      },
    },
  );
}

describe.skipIf(noPython !== undefined)("Python of a skill that requires a signature", () => {
  test("runs, with helpers, packages and late imports", async () => {
    const skill = await openSigned();
    expect(skill.host.diagnostics).toEqual([]);
    expect([await skill.text("greet"), await skill.text("greet_late")]).toEqual(["good Ada", "good"]);
  });

  const swaps: readonly [string, (folder: string) => void][] = [
    ["a helper is written over", (at) => put(join(at, "tools/_words.py"), evil)],
    [
      "the module itself is written over",
      (at) => put(join(at, "tools/greet.py"), String(python["tools/greet.py"]).replace("return f", 'return "evil" + f')),
    ],
    ["a part of a package is written over", (at) => put(join(at, "pkg/_inner.py"), 'name = "evil"\n')],
  ];
  test.each(swaps)("does not run when %s after the check", async (_, swap) => {
    const skill = await openSigned(swap);
    const names = skill.session.listTools().map(({ name }) => name);
    expect(names).toEqual(["first"]);
    expect(skill.host.diagnostics).toMatchObject([
      { code: "MODULE_UNTRUSTED", message: expect.stringContaining("has changed since the skill was signed") },
    ]);
  });

  const additions: readonly [string, (folder: string) => void][] = [
    ["a package that hides a helper", (at) => put(join(at, "tools/_words/__init__.py"), evil)],
    ["a module that hides a helper, in a folder that is looked at first", (at) => put(join(at, "_words.py"), evil)],
    ["an __init__.py in a folder without one", (at) => put(join(at, "pkg/__init__.py"), 'raise RuntimeError("evil")\n')],
    ["a module of the standard library", (at) => put(join(at, "hashlib.py"), evil)],
    ["a compiled helper without its source", (at) => put(join(at, "tools/_words.abi3.so"), "evil")],
  ];
  test.each(additions)("does not see %s that was added after the check", async (_, add) => {
    const skill = await openSigned(add);
    expect(await skill.text("greet")).toBe("good Ada");
  });

  test("does not import a file during a call that has changed since", async () => {
    const skill = await openSigned();
    const file = join(skill.folder, "tools/_late.py");
    writeFileSync(file, evil);
    expect(await skill.text("greet_late")).not.toContain("evil");
    writeFileSync(file, helper);
    expect(await skill.text("greet_late")).toBe("good");
  });

  test("does not run an interpreter that was added to the folder after the check", async () => {
    const skill = await openSigned((at) =>
      put(join(at, process.platform === "win32" ? ".venv/Scripts/python.exe" : ".venv/bin/python"), "evil"),
    );
    expect(await skill.text("greet")).toBe("good Ada");
  });

  test("finds its own modules by the real path of its folder, too", async () => {
    const resolved = String(python["tools/greet.py"]).replace(
      "from _words",
      'import sys, pathlib\nsys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))\nfrom extra import extra\nfrom _words',
    );
    const skill = await openSigned(undefined, { ...python, "tools/greet.py": resolved, "lib/extra.py": "extra = 1\n" });
    expect(await skill.text("greet")).toBe("good Ada");
    renameSync(join(skill.folder, "lib"), join(skill.folder, "other"));
    expect(await skill.text("greet")).toBe("good Ada");
  });
});

test.skipIf(noPython !== undefined)("a folder that is deleted and created again runs its new files", async () => {
  const source = (says: string): string =>
    `from skillhost import define_tool\n\n@define_tool(description="Says.", parameters={"type": "object", "properties": {}})\ndef say() -> str:\n    return "${says}"\n`;
  const skill = await openPythonSkill({ "tools/say.py": source("old") });
  expect(await skill.text("say")).toBe("old");
  rmSync(skill.folder, { recursive: true });
  await skill.host.reload();
  expect(skill.session.listTools()).toEqual([]);
  put(join(skill.folder, "SKILL.md"), "---\nname: py\ndescription: For a test.\n---\nHi.\n");
  put(join(skill.folder, "tools/say.py"), source("new"));
  await skill.host.reload();
  expect(await skill.text("say")).toBe("new");
});
