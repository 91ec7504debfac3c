import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { poll, tempFolder } from "../../skills/kit.ts";
import { patience } from "../../slowness.ts";
import { hasPydantic, noPython, openPythonSkill } from "./python-kit.ts";

const deadline = { timeout: patience(15_000), interval: 20 };

const everyKind = `
import enum
from dataclasses import dataclass
from typing import Annotated, Literal, Optional, TypedDict
from skillhost import ToolContext, ToolInvocation, ToolResult, define_tool

class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"

@dataclass
class Point:
    x: int
    y: int = 0

class Box(TypedDict):
    width: int

@define_tool
def nothing():
    """Says it is there.

    Not this."""
    return "here"

@define_tool(description="Who asks")
async def who(invocation):
    return {"session": invocation.session_id, "key": invocation["tool_name"]}

@define_tool(name="custom_name", description="Another name")
async def my_handler(params, invocation):
    return {"got": params, "call": invocation.tool_name}

@define_tool(description="By name")
def named(text: Annotated[str, "What to say"], times: int = 2, color: Color = Color.RED, tags: list[str] = [], maybe: Optional[int] = None, how: Literal["a", "b"] = "a"):
    return {"text": text * times, "color": color.name, "tags": tags, "maybe": maybe, "how": how}

@define_tool(description="A dataclass")
def point(where: Point, ctx: ToolContext):
    return [where.x, where.y, ctx.workspace_root != ""]

@define_tool(description="A typed dict")
def box(params: Box, inv: ToolInvocation):
    return params["width"]

@define_tool(description="A result in full", title="Full", skip_permission=True, timeout=5000)
def full():
    return ToolResult(text_result_for_llm="no luck", result_type="failure", error="E", session_log="log")

by_call = define_tool("by_call", description="Without a decorator", handler=lambda params: params["n"] + 1, parameters={"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
`;

const executeModule = `
from tools._base import ToolContext
SCHEMA = {"name": "write_note", "description": "Writes a note.", "inputSchema": {"type": "object", "properties": {"path": {"type": "string", "description": "Where."}}, "required": ["path"]}}

def execute(tool_input: dict, ctx: ToolContext) -> dict:
    if tool_input["path"] == "bad":
        return {"result": "error", "message": "There is no room."}
    if tool_input["path"] == "list":
        return [{"type": "text", "value": "one"}, {"type": "text", "value": "two"}]
    with open(ctx.workspace_root + "/" + tool_input["path"], "w") as file:
        file.write("noted")
    ctx.sync_file_to_server(tool_input["path"], "noted")
    return {"result": "success"}
`;

describe.skipIf(noPython !== undefined)("Python tools", () => {
  test("are defined by functions of every signature, with schemas of their annotations", async () => {
    const { session, text } = await openPythonSkill({ "tools/every.py": everyKind });
    const definitions = new Map(session.tools.map((tool) => [tool.name, tool]));
    expect(definitions.get("nothing")).toMatchObject({ description: "Says it is there.", parameters: { type: "object", properties: {} } });
    expect(definitions.get("named")?.parameters).toEqual({
      type: "object",
      properties: {
        text: { type: "string", description: "What to say" },
        times: { type: "integer", default: 2 },
        color: { enum: ["red", "blue"], default: "red" },
        tags: { type: "array", items: { type: "string" }, default: [] },
        maybe: { anyOf: [{ type: "integer" }, { type: "null" }], default: null },
        how: { enum: ["a", "b"], default: "a" },
      },
      required: ["text"],
    });
    expect(definitions.get("point")?.parameters).toMatchObject({
      properties: { x: { type: "integer" }, y: { default: 0 } },
      required: ["x"],
    });
    expect(definitions.get("full")).toMatchObject({ title: "Full", skipPermission: true, timeout: 5000 });
    expect(await text("nothing")).toBe("here");
    expect(JSON.parse(await text("who"))).toEqual({ session: session.id, key: "who" });
    expect(JSON.parse(await text("custom_name", { a: 1 }))).toEqual({ got: { a: 1 }, call: "custom_name" });
    expect(JSON.parse(await text("named", { text: "ab", color: "blue" }))).toEqual({
      text: "abab",
      color: "BLUE",
      tags: [],
      maybe: null,
      how: "a",
    });
    expect(await text("point", { x: 3 })).toBe("[3,0,true]");
    expect(await text("box", { width: 4 })).toBe("4");
    expect(await text("by_call", { n: 1 })).toBe("2");
    expect(await session.callTool("full")).toMatchObject({
      resultType: "failure",
      textResultForLlm: "no luck",
      error: "E",
      sessionLog: "log",
    });
    expect(await session.callTool("named", { text: 1 })).toMatchObject({
      resultType: "failure",
      textResultForLlm: expect.stringContaining("text"),
    });
  });

  test("are defined by SCHEMA and execute, as for a language server", async () => {
    const { text, folder, changed, session } = await openPythonSkill({ "tools/write_note.py": executeModule });
    expect(await text("write_note", { path: "a.txt" })).toBe("success");
    expect(readFileSync(join(folder, "../a.txt"), "utf8")).toBe("noted");
    expect(changed).toEqual([{ path: join(folder, "../a.txt"), content: "noted" }]);
    expect(await text("write_note", { path: "list" })).toBe("one\ntwo");
    expect(await session.callTool("write_note", { path: "bad" })).toMatchObject({
      resultType: "failure",
      textResultForLlm: "There is no room.",
    });
  });

  test.skipIf(!hasPydantic)("take models of Pydantic, whose own checks count, and the Copilot SDK's import", async () => {
    const { session, text } = await openPythonSkill({
      "tools/search.py": `
from copilot.tools import define_tool
from pydantic import BaseModel, Field, field_validator

class SearchParams(BaseModel):
    query: str = Field(description="What to find")
    limit: int = Field(default=10, ge=1)

    @field_validator("query")
    @classmethod
    def not_rude(cls, value):
        if value == "rude":
            raise ValueError("be polite")
        return value

@define_tool(description="Search")
async def search(params: SearchParams, invocation) -> dict:
    return {"results": [params.query] * params.limit, "session": invocation.session_id}
`,
    });
    expect(session.tools.find(({ name }) => name === "search")?.parameters).toMatchObject({
      properties: { query: { type: "string", description: "What to find" }, limit: { default: 10, minimum: 1 } },
      required: ["query"],
    });
    expect(JSON.parse(await text("search", { query: "x", limit: 2 }))).toEqual({ results: ["x", "x"], session: session.id });
    expect(await text("search", { query: "rude" })).toBe("Invalid arguments: query: Value error, be polite");
  });

  test("call other tools of the host and report progress", async () => {
    const { text, session } = await openPythonSkill({
      "tools/back.py": `
from skillhost import define_tool

@define_tool(description="Doubles")
def double(n: int) -> int:
    return n * 2

@define_tool(description="Calls another tool, from a coroutine")
async def twice(n: int, ctx):
    first = await ctx.call_tool("double", {"n": n})
    ctx.progress("half way", 1, 2)
    return int(first["textResultForLlm"]) + 1

@define_tool(description="Calls another tool, from a thread")
def thrice(n: int, ctx):
    return ctx.call_tool("double", {"n": n})["textResultForLlm"] + "!"
`,
    });
    const progress: unknown[] = [];
    session.on("tool.execution_progress", ({ data }) => void progress.push(data));
    expect(await text("twice", { n: 2 })).toBe("5");
    expect(await text("thrice", { n: 2 })).toBe("4!");
    expect(progress).toMatchObject([{ progressMessage: "half way" }]);
  });

  test("that print, exit, fork, return what is not valid JSON or throw harm neither the protocol nor each other", async () => {
    const { text, session } = await openPythonSkill({
      "tools/rude.py": `
import os, subprocess, sys
from skillhost import define_tool
print("at import")

@define_tool(description="Prints")
def prints() -> str:
    print("to standard output")
    os.write(1, b"raw bytes\\n")
    subprocess.run(["echo", "from a child"])
    return "printed"

@define_tool(description="Forks")
def forks() -> str:
    return "child" if os.fork() == 0 else "parent"

@define_tool(description="Throws")
def throws():
    raise RuntimeError("secret path /etc/passwd")

@define_tool(description="Exits")
def exits():
    os._exit(3)

@define_tool(description="Leaves")
def leaves():
    sys.exit("bye")

@define_tool(description="Gives an object")
def gives_object():
    return object()

@define_tool(description="Gives too much")
def gives_nan():
    return float("nan")
`,
    });
    expect(await text("prints")).toBe("printed");
    expect(await text("forks")).toBe("parent");
    const thrown = await session.callTool("throws");
    expect(thrown.textResultForLlm).not.toContain("passwd");
    expect(thrown).toMatchObject({ resultType: "failure", error: "RuntimeError: secret path /etc/passwd" });
    expect(await text("gives_object")).toBe("The tool returned something that is not valid JSON.");
    expect(await text("gives_nan")).toBe("The tool returned something that is not valid JSON.");
    expect((await session.callTool("leaves")).resultType).toBe("failure");
    const others = [session.callTool("exits"), session.callTool("prints")];
    expect((await others[0])?.resultType).toBe("failure");
    await others[1];
    expect(await text("prints")).toBe("printed");
  });

  test("that never return are ended by their deadline, a thread with its process, and the next call has a new one", async () => {
    const { session, text } = await openPythonSkill(
      {
        "tools/stuck.py": `
import asyncio, os
from skillhost import define_tool

@define_tool(description="Never ends", timeout=150)
def stuck():
    while True:
        pass

@define_tool(description="Waits for ever", timeout=150)
async def waits():
    await asyncio.Event().wait()

@define_tool(description="Looks whether it is still wanted", timeout=150)
def polite(invocation):
    import time
    while not invocation.cancelled:
        time.sleep(0.01)

@define_tool(description="The process")
def pid() -> int:
    return os.getpid()
`,
      },
      { config: { killAfter: 200 } },
    );
    const first = await text("pid");
    expect((await session.callTool("waits")).resultType).toBe("timeout");
    expect((await session.callTool("polite")).resultType).toBe("timeout");
    expect(await text("pid")).toBe(first);
    expect((await session.callTool("stuck")).resultType).toBe("timeout");
    await vi.waitFor(async () => expect(await text("pid")).not.toBe(first), deadline);
    await vi.waitFor(() => expect(() => process.kill(Number(first), 0)).toThrow(), deadline);
  });

  test("are reloaded when they or a helper are saved, and the last good ones serve while they are broken", async () => {
    const {
      host,
      text,
      put: save,
    } = await openPythonSkill(
      {
        "tools/shout.py":
          'from _loud import loud\nfrom skillhost import define_tool\n\n@define_tool(description="Shouts")\ndef shout(text: str) -> str:\n    return loud(text)\n',
        "tools/_loud.py": "def loud(text):\n    return text.upper()\n",
      },
      { watch: true },
    );
    expect(await text("shout", { text: "hi" })).toBe("HI");
    save("tools/_loud.py", "def loud(text):\n    return text.upper() + '!'\n");
    await vi.waitFor(async () => expect(await text("shout", { text: "hi" })).toBe("HI!"), deadline);
    save("tools/shout.py", "def broken(:\n");
    await vi.waitFor(() => expect(host.diagnostics).toContainEqual(expect.objectContaining({ code: "PYTHON_SYNTAX" })), deadline);
    const fault = host.diagnostics.find(({ code }) => code === "PYTHON_SYNTAX");
    expect(fault).toMatchObject({ file: expect.stringMatching(/shout\.py$/), range: { start: { line: 1 } } });
    expect(await text("shout", { text: "hi" })).toBe("HI!");
    save(
      "tools/shout.py",
      'from skillhost import define_tool\n\n@define_tool(description="Whispers")\ndef shout(text: str) -> str:\n    return text.lower()\n',
    );
    await vi.waitFor(async () => expect(await text("shout", { text: "Hi" })).toBe("hi"), deadline);
    expect(host.diagnostics.filter(({ severity }) => severity === "error")).toEqual([]);
  });

  test("whose process ended run again unchanged, even if their files are broken now", async () => {
    const {
      text,
      session,
      put: save,
      host,
    } = await openPythonSkill(
      {
        "tools/keep.py":
          'import os\nfrom _word import word\nfrom skillhost import define_tool\n\n@define_tool(description="Gives a word, or ends")\ndef keep(end: bool = False) -> str:\n    if end:\n        os._exit(1)\n    return word\n',
        "tools/_word.py": 'word = "first"\n',
      },
      { watch: true },
    );
    expect(await text("keep")).toBe("first");
    save("tools/_word.py", "word = (\n");
    await vi.waitFor(() => expect(host.diagnostics.map(({ code }) => code)).toContain("PYTHON_SYNTAX"), deadline);
    expect((await session.callTool("keep", { end: true })).resultType).toBe("failure");
    expect(await text("keep")).toBe("first");
  });

  test("that import a missing module load when it appears", async () => {
    const {
      host,
      text,
      put: save,
    } = await openPythonSkill(
      {
        "tools/late.py":
          'from _later import word\nfrom skillhost import define_tool\n\n@define_tool(description="Says it")\ndef late() -> str:\n    return word\n',
      },
      { watch: true },
    );
    expect(host.diagnostics).toMatchObject([{ code: "PYTHON_THREW", message: expect.stringContaining("_later") }]);
    save("tools/_later.py", 'word = "now"\n');
    await vi.waitFor(async () => expect(await text("late")).toBe("now"), deadline);
  });

  test("are not searched in scripts: a file that defines none is not run", async () => {
    const marker = join(tempFolder(), "ran");
    const { host, session } = await openPythonSkill({ "tools/script.py": `open(${JSON.stringify(marker)}, "w").write("ran")\n` });
    expect(session.tools.filter(({ name }) => name.includes("script"))).toEqual([]);
    expect(host.diagnostics.filter(({ severity }) => severity !== "info")).toEqual([]);
    expect(existsSync(marker)).toBe(false);
  });

  test("run in the skill's own virtual environment with only the configured variables", async () => {
    const prepare = (folder: string): void =>
      expect(spawnSync("python3", ["-m", "venv", "--without-pip", join(folder, ".venv")]).status).toBe(0);
    vi.stubEnv("PYTHON_TOOLS_GIVEN", "given");
    vi.stubEnv("PYTHON_TOOLS_SECRET", "secret");
    const { text } = await openPythonSkill(
      {
        "tools/where.py":
          'import os, sys\nfrom skillhost import define_tool\n\n@define_tool(description="Where")\ndef where():\n    return [os.environ.get("PYTHON_TOOLS_GIVEN"), os.environ.get("PYTHON_TOOLS_SECRET"), sys.prefix != sys.base_prefix]\n',
      },
      { config: { environment: ["PYTHON_TOOLS_GIVEN"] }, prepare },
    );
    vi.unstubAllEnvs();
    expect(JSON.parse(await text("where"))).toEqual(["given", null, true]);
  });

  test("leave no process behind when their host closes", async () => {
    const { host, text } = await openPythonSkill({
      "tools/pid.py":
        'import os\nfrom skillhost import define_tool\n\n@define_tool(description="The process")\ndef pid() -> int:\n    return os.getpid()\n',
    });
    const pid = Number(await text("pid"));
    process.kill(pid, 0);
    await host.close();
    expect(() => process.kill(pid, 0)).toThrow();
  });
});

test("without Python a diagnostic says what to do, and the skill's other tools are available", async () => {
  const { host, session } = await openPythonSkill(
    {
      "tools/a.py": "from skillhost import define_tool\n\n@define_tool(description='x')\ndef a(): pass\n",
      "tools/b.mjs": 'export const SCHEMA = { name: "b", description: "Is there." };\nexport const execute = () => "b";\n',
    },
    { config: { python: "/nowhere/python3" } },
  );
  expect(host.diagnostics).toMatchObject([
    { code: "PYTHON_MISSING", severity: "error", message: expect.stringContaining("Install Python") },
  ]);
  expect(session.tools.map(({ name }) => name)).toContain("b");
});

describe.skipIf(noPython !== undefined)("the log of Python", () => {
  const recorder = () => {
    const lines: { readonly message: string; readonly place?: object; readonly stack?: string }[] = [];
    const take = (message: string, data: object = {}): void => void lines.push({ message, ...data });
    return { lines, logger: { error: take, warning: take, info: take, debug() {}, enabled: () => true } };
  };

  test("an exception is logged with the file and line that raised it, through helpers too", async () => {
    const { lines, logger } = recorder();
    const skill = await openPythonSkill(
      {
        "tools/fail.py": `from skillhost import define_tool\nfrom _deep import fail\n\n@define_tool(description="Fails.", parameters={"type": "object", "properties": {}})\ndef failing() -> str:\n    return fail()\n`,
        "tools/_deep.py": `${"\n".repeat(7)}def fail():\n    value = {}\n    return value["missing"]\n`,
      },
      { logger },
    );
    const result = await skill.session.callTool("failing", {});
    const deep = join(skill.folder, "tools/_deep.py");
    const threw = lines.find(({ message }) => message.includes("threw"));
    expect(threw).toMatchObject({ place: { file: deep, line: 10 } });
    expect(result.sessionLog).toBe(
      `KeyError: 'missing'\n    at fail (${deep}:10:1)\n    at failing (${join(skill.folder, "tools/fail.py")}:6:1)`,
    );
    expect(result.textResultForLlm).not.toMatch(/_deep|missing/);
  });

  test("output of one call does not suppress that of the next", async () => {
    const { lines, logger } = recorder();
    const skill = await openPythonSkill(
      {
        "tools/talk.py": `import sys\nfrom skillhost import define_tool\n\n@define_tool(description="Prints.", parameters={"type": "object", "properties": {"count": {"type": "integer"}, "word": {"type": "string"}}})\ndef talk(count: int, word: str) -> str:\n    for _ in range(count):\n        print(word, file=sys.stderr)\n    return "done"\n`,
      },
      { logger },
    );
    const logged = (word: string): number => lines.filter(({ message }) => message === word).length;
    await skill.text("talk", { count: 1500, word: "noise" });
    await poll("the log is full", () => lines.some(({ message }) => message.includes("print too much")));
    expect(logged("noise")).toBe(1000);
    await skill.text("talk", { count: 3, word: "news" });
    await poll("the next call is logged", () => logged("news") === 3);
  });
});
