import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { silentLogger } from "../../src/base/logger.ts";
import { createHost } from "../../src/host/create-host.ts";
import type { Host } from "../../src/host/host.ts";
import type { RecordedEvent } from "../../src/session/history/events.ts";
import type { Session } from "../../src/session/session.ts";
import type { SessionOptions } from "../../src/session/session-config.ts";
import { approveAll, type ToolContext } from "../../src/tools/tool.ts";
import { emptyFolder } from "../io/temp-folder.ts";

async function hostIn(folder: string): Promise<Host> {
  const host = await createHost({
    skillDirectories: [],
    plugins: [],
    watch: false,
    logger: silentLogger,
    workingDirectory: folder,
    sessionsDirectory: join(folder, "sessions"),
  });
  onTestFinished(() => host.close());
  return host;
}

interface Write {
  readonly file: string;
  readonly text: string;
  /** Whether the tool does not say what was there before. */
  readonly isSilent?: boolean;
  readonly then?: string;
}

/** A tool that writes files as those of the workspace do. */
const given: SessionOptions = {
  onPermissionRequest: approveAll,
  fileChangeTracking: true,
  tools: [
    {
      name: "write",
      handler: ({ file, text, isSilent }: Write, _: unknown, context: ToolContext) => {
        const before = existsSync(file) ? readFileSync(file) : null;
        writeFileSync(file, text);
        context.fileChanged(file, text, isSilent ? {} : { before });
        return "written";
      },
    },
  ],
};

interface Place {
  readonly folder: string;
  readonly session: Session;
  readonly a: string;
  write(file: string, text: string, options?: Partial<Write>): Promise<void>;
  /** The id of the event with which the call of this number began. */
  point(number: number): Promise<string>;
}

async function place(options: SessionOptions = given): Promise<Place> {
  const folder = emptyFolder();
  const session = await (await hostIn(folder)).createSession({ ...options, sessionId: "s" });
  return placeOf(folder, session);
}

function placeOf(folder: string, session: Session): Place {
  return {
    folder,
    session,
    a: join(folder, "a.txt"),
    async write(file, text, more = {}) {
      const { resultType, textResultForLlm } = await session.callTool("write", { file, text, ...more });
      expect(resultType, textResultForLlm).toBe("success");
    },
    async point(number) {
      const events: readonly RecordedEvent[] = await session.getMessages();
      return events.filter(({ type }) => type === "tool.execution_start")[number]!.id;
    },
  };
}

const read = (file: string): string => readFileSync(file, "utf8");

describe("a rewind with files", () => {
  test("puts back what files contained, and removes those that were created", async () => {
    const { session, folder, a, write, point } = await place();
    writeFileSync(a, "original\r\n");
    chmodSync(a, 0o640);
    await write(a, "kept\n");
    await write(a, "one\n");
    await write(a, "two\n");
    await write(join(folder, "new.txt"), "new");
    const eventId = await point(1);
    expect(await session.rewinding.preview(eventId)).toEqual([
      { path: a, changeType: "modified", linesAdded: 2, linesRemoved: 2 },
      { path: join(folder, "new.txt"), changeType: "created", linesAdded: 1, linesRemoved: 0 },
    ]);
    expect(await session.rewind(eventId, { restoreFiles: true })).toEqual({
      outcome: "success",
      eventsRemoved: expect.any(Number),
      restoredFiles: [a, join(folder, "new.txt")],
      skippedFiles: [],
    });
    expect(read(a)).toBe("kept\n");
    expect(existsSync(join(folder, "new.txt"))).toBe(false);
    expect((await session.rewind(await point(0), { restoreFiles: true })).restoredFiles).toEqual([a]);
    expect(read(a)).toBe("original\r\n");
  });

  test("works for another process that resumes the session, and for a fork, with any bytes", async () => {
    const { session, folder, a, write } = await place();
    const bytes = Buffer.from([0xff, 0xfe, 0x41, 0x00, 0x00, 0xd8]);
    writeFileSync(a, bytes);
    await write(a, "text");
    await session.disconnect();
    const host = await hostIn(folder);
    const fork = placeOf(folder, await host.resumeSession(await host.forkSession("s"), given));
    expect(await fork.session.rewind(await fork.point(0), { restoreFiles: true })).toMatchObject({ restoredFiles: [a], skippedFiles: [] });
    expect(readFileSync(a).equals(bytes)).toBe(true);
    // The file is as it was, so there is nothing that the other session could restore.
    const again = placeOf(folder, await host.resumeSession("s", given));
    expect(await again.session.rewind(await again.point(0), { restoreFiles: true })).toMatchObject({ restoredFiles: [], skippedFiles: [] });
  });

  test("leaves files that others changed, after or between the changes of the session, and says so", async () => {
    const { session, folder, write, point } = await place();
    const [after, between, gone, linked, moved] = ["after", "between", "gone", "linked", "folder"].map((name) => join(folder, name));
    mkdirSync(moved!);
    for (const file of [after!, between!, gone!, linked!, join(moved!, "f")]) await write(file, "first");
    const eventId = await point(0);
    writeFileSync(between!, "by a person");
    await write(between!, "second");
    writeFileSync(after!, "by a person");
    rmSync(gone!);
    writeFileSync(join(folder, "target"), "first");
    rmSync(linked!);
    symlinkSync(join(folder, "target"), linked!);
    renameSync(moved!, join(folder, "elsewhere"));
    symlinkSync(join(folder, "elsewhere"), moved!);
    const { outcome, restoredFiles, skippedFiles } = await session.rewind(eventId, { restoreFiles: true });
    expect(outcome).toBe("success");
    expect(restoredFiles).toEqual([]);
    const reasons = Object.fromEntries(skippedFiles.map(({ path, reason }) => [path, reason]));
    const changed = "user-modified";
    // A file that the session created and that is gone is as it was before.
    expect(reasons).toEqual({ [after!]: changed, [between!]: changed, [linked!]: changed, [join(moved!, "f")]: changed });
    expect([read(after!), read(between!), read(join(folder, "target"))]).toEqual(["by a person", "second", "first"]);
    expect(read(join(folder, "elsewhere", "f"))).toBe("first");
  });

  test("skips what was not captured: changes of unknown tools, large files and damaged records", async () => {
    const { session, folder, a, write, point } = await place();
    const [large, damaged] = [join(folder, "large"), join(folder, "damaged")];
    writeFileSync(large, "x".repeat(6 * 1024 * 1024));
    writeFileSync(damaged, "original");
    await write(a, "text", { isSilent: true });
    await write(large, "small");
    await write(damaged, "changed");
    expect(await session.rewinding.preview(await point(0))).toEqual([
      { path: damaged, changeType: "modified", linesAdded: 1, linesRemoved: 1 },
    ]);
    const record = join(folder, "sessions", "s", "file-changes", "000003.json");
    writeFileSync(record, read(record).replace(Buffer.from("original").toString("base64"), Buffer.from("tampered").toString("base64")));
    const { skippedFiles, restoredFiles } = await session.rewind(await point(0), { restoreFiles: true });
    expect(restoredFiles).toEqual([]);
    expect(new Set(skippedFiles.map(({ path, reason }) => `${path} ${reason}`))).toEqual(
      new Set([a, large, damaged].map((path) => `${path} skipped-capture`)),
    );
    expect(read(damaged)).toBe("changed");
  });

  test("restores all files or none", async () => {
    const { session, folder, a, write, point } = await place();
    // There is no name for the temporary file beside it, so it can be changed in place only.
    const unwritable = join(folder, "b".repeat(250));
    for (const file of [a, unwritable]) {
      writeFileSync(file, "original");
      await write(file, "changed");
    }
    const before = await session.getMessages();
    const result = await session.rewind(await point(0), { restoreFiles: true });
    expect(result).toMatchObject({
      outcome: "files-rolled-back",
      restoredFiles: [],
      error: expect.stringContaining("could not be restored"),
    });
    expect([read(a), read(unwritable)]).toEqual(["changed", "changed"]);
    expect(await session.getMessages()).toEqual(before);
  });

  test("is refused while a call runs, at an unknown event, and without tracking; nothing is changed then", async () => {
    let finish = (): void => {};
    const hangs = { name: "hangs", handler: () => new Promise<void>((resolve) => (finish = resolve)) };
    const { session, a, write, point } = await place({ ...given, tools: [...(given.tools ?? []), hangs] });
    await write(a, "text");
    await expect(session.rewind("nothing", { restoreFiles: true })).rejects.toMatchObject({ code: "EVENT_UNKNOWN" });
    const call = session.callTool("hangs");
    await expect(session.rewind(await point(0), { restoreFiles: true })).rejects.toMatchObject({ code: "SESSION_BUSY" });
    finish();
    await call;
    expect(read(a)).toBe("text");
    const other = await place({ ...given, fileChangeTracking: false });
    await other.write(other.a, "text");
    await expect(other.session.rewind(await other.point(0), { restoreFiles: true })).rejects.toMatchObject({ code: "FILES_NOT_TRACKED" });
    expect(await other.session.rewind(await other.point(0))).toMatchObject({ outcome: "success", restoredFiles: [], skippedFiles: [] });
    expect(read(other.a)).toBe("text");
    expect(existsSync(join(other.folder, "sessions", "s", "file-changes"))).toBe(false);
    await expect(session.update({ fileChangeTracking: false } as never)).rejects.toMatchObject({ code: "SESSION_OPTIONS" });
  });
});
