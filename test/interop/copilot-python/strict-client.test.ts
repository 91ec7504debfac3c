import { execFile, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, onTestFinished, test } from "vitest";
import { buildPackage } from "../../built-package.ts";
import { chatAnswer, type ScriptedModel, startScriptedModel } from "../../doubles/scripted-model.ts";
import { hasSchemas, schemaFolder } from "../../servers/copilot/wire-contract.ts";
import { calling } from "../../servers/copilot/wire-kit.ts";

const run = promisify(execFile);
const here = (file: string): string => fileURLToPath(new URL(file, import.meta.url));
const python = spawnSync("python3", ["--version"], { encoding: "utf8" });
const canRun = python.status === 0 && hasSchemas;

function folderOfTest(): string {
  const folder = mkdtempSync(join(tmpdir(), "skillhost-python-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

async function modelOfTest(): Promise<ScriptedModel> {
  const model = await startScriptedModel();
  onTestFinished(() => model.close());
  return model;
}

/** Reads one frame as strict clients do. Returns what they say, without the line that counts. */
function readFrame(frame: object): string {
  const file = join(folderOfTest(), "frame.jsonl");
  writeFileSync(file, `${JSON.stringify(frame)}\n`);
  const { stdout, stderr } = spawnSync("python3", [here("strict_reader.py"), schemaFolder, file], {
    encoding: "utf8",
    env: { ...process.env, PYTHONDONTWRITEBYTECODE: "1" },
  });
  expect(stderr).toBe("");
  return stdout.split("\n").slice(0, -2).join("\n");
}

describe.skipIf(!canRun)("a client in Python, which reads every message strictly", () => {
  test("a help desk uses a tool, runs a command, resumes its session and reads the events", async () => {
    const model = await modelOfTest();
    const folder = folderOfTest();
    writeFileSync(join(folder, "notes.txt"), "Paper is in room 4.");
    model.answer(
      chatAnswer(calling("get_ticket", { id: "17" }, "ticket")),
      chatAnswer(calling("bash", { command: "ls *.txt && echo listed", description: "Lists the text files." }, "shell")),
      chatAnswer({ content: "The printer needs paper; see notes.txt." }),
      chatAnswer({ content: "You are welcome." }),
    );
    const { GH_TOKEN: _gh, GITHUB_TOKEN: _github, ...environment } = process.env;
    const command = [process.execPath, buildPackage().bin, "--headless", "--no-auto-update", "--stdio"];
    const { stdout } = await run("python3", [here("help_desk.py"), schemaFolder, folder, ...command], {
      cwd: folder,
      env: {
        ...environment,
        PYTHONDONTWRITEBYTECODE: "1",
        COPILOT_HOME: join(folder, ".home"),
        COPILOT_API_URL: model.url,
        SKILLHOST_TRUST: folder,
      },
    });
    expect(stdout.trim().split("\n")).toEqual([
      "protocol 3",
      "asked for custom-tool get_ticket",
      "finished ticket True",
      "asked for shell ls *.txt && echo listed",
      "finished shell True",
      "answer: The printer needs paper; see notes.txt.",
      "resumed with 1 message and 2 results",
      "answer: You are welcome.",
      "ended with 0",
    ]);
  });

  const envelope = { id: "0b5e6f0c-6b1f-4a43-a1a5-70a0f3f2f1c5", timestamp: "2026-01-01T00:00:00.000Z", parentId: null, ephemeral: true };
  test.each([
    ["a complete event is read", { event: { ...envelope, type: "session.idle", data: {} } }, ""],
    ["null for an optional member is read", { event: { ...envelope, type: "session.idle", data: { aborted: null } } }, ""],
    [
      "a missing member",
      { event: { ...envelope, ephemeral: undefined, type: "session.error", data: { errorType: "x" } } },
      "/data/message: is missing",
    ],
    ["a wrong type", { event: { ...envelope, type: "session.idle", data: { aborted: "no" } } }, "is not a boolean"],
    ["an id that is not a UUID", { event: { ...envelope, id: "1", type: "session.idle", data: {} } }, "is not a uuid"],
    ["a date without an offset", { event: { ...envelope, timestamp: "2026-01-01T00:00", type: "session.idle", data: {} } }, "RFC 3339"],
    ["an event of an unknown type", { event: { ...envelope, type: "session.none", data: {} } }, "is unknown to the schemas"],
    ["an unknown value of an enum", { method: "session.mode.get", result: "fast" }, '"fast" is not one of'],
    [
      "an unknown discriminator of a union",
      { event: { ...envelope, type: "permission.requested", data: { requestId: "1", permissionRequest: { kind: "dance" } } } },
      '"dance" is not a known discriminator',
    ],
    ["a number for a text", { event: { ...envelope, type: "session.title_changed", data: { title: 1.5 } } }, "is not a string"],
  ])("the strict reader reports: %s", (_what, frame, report) => {
    if (report === "") expect(readFrame(frame)).toBe("");
    else expect(readFrame(frame)).toContain(report);
  });
});
