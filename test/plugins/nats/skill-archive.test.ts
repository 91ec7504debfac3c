import { createHash } from "node:crypto";
import { chmodSync, existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { packSkill, unpackSkill } from "../../../plugins/nats/skill-archive.ts";
import { versionFor } from "../../../plugins/nats/skill-catalog.ts";
import { putAll, skillMd, tempFolder } from "../../skills/kit.ts";

function archiveOf(value: unknown): { readonly bytes: Uint8Array; readonly digest: string } {
  const bytes = gzipSync(JSON.stringify(value));
  return { bytes, digest: createHash("sha256").update(bytes).digest("hex") };
}

const format = "skillhost-skill/1";
const file = (path: string): readonly unknown[] => [path, Buffer.from("x").toString("base64"), false];

test("what is packed is unpacked with the same files, and equal files have one digest", () => {
  const [from, to] = [tempFolder(), join(tempFolder(), "new")];
  putAll(from, { "SKILL.md": skillMd("a"), "tools/ü.ts": "export {};\n", "scripts/run.sh": "#!/bin/sh\n", "left.txt": "" });
  chmodSync(join(from, "scripts/run.sh"), 0o755);
  const files = ["tools/ü.ts", "scripts/run.sh", "SKILL.md"];
  const { bytes, digest } = packSkill(from, files);
  expect(packSkill(from, files.toReversed()).digest).toBe(digest);
  unpackSkill(bytes, digest, to);
  expect(readdirSync(to, { recursive: true }).sort()).toEqual(["SKILL.md", "scripts", "scripts/run.sh", "tools", "tools/ü.ts"]);
  expect(readFileSync(join(to, "SKILL.md"), "utf8")).toBe(skillMd("a"));
  expect(statSync(join(to, "scripts/run.sh")).mode & 0o100).toBe(0o100);
});

test.each(["../x", "a/../../x", "/etc/x", "a//b", "./x", "a\\b", "C:x", "a\0b", "a.", "", "a/", "x\ny"])(
  "the path %j is refused, and nothing is written",
  (path) => {
    const to = join(tempFolder(), "new");
    const { bytes, digest } = archiveOf({ format, files: [file("SKILL.md"), file(path)] });
    expect(() => unpackSkill(bytes, digest, to)).toThrow(
      expect.objectContaining({ code: "FLEET_SKILL", message: expect.stringContaining("invalid path") }),
    );
    expect(existsSync(to)).toBe(false);
  },
);

test.each([
  ["two names that are one file on some disks", { format, files: [file("A"), file("a")] }, "twice"],
  ["another form", { format: "x", files: [] }, "unknown form"],
  ["no files", { format }, "unknown form"],
  ["nothing", null, "unknown form"],
  ["an entry of another form", { format, files: [7] }, "invalid path"],
])("an archive with %s is refused", (_, value, message) => {
  const { bytes, digest } = archiveOf(value);
  expect(() => unpackSkill(bytes, digest, join(tempFolder(), "new"))).toThrow(message);
});

test("bytes that do not have the digest of their name are refused, and so are damaged ones", () => {
  const to = join(tempFolder(), "new");
  const { bytes, digest } = archiveOf({ format, files: [file("SKILL.md")] });
  expect(() => unpackSkill(bytes, "0".repeat(64), to)).toThrow("digest of its name");
  const half = bytes.subarray(0, 20);
  expect(() => unpackSkill(half, createHash("sha256").update(half).digest("hex"), to)).toThrow("cannot be unpacked");
  expect(digest).toHaveLength(64);
});

test("a share of the hosts gets a canary, always the same ones, and more of them with a larger share", () => {
  const hosts = Array.from({ length: 1_000 }, (_, index) => `host-${index}`);
  const chosen = (share: number): readonly string[] =>
    hosts.filter((host) => versionFor({ skill: "s", stable: "old", canary: { digest: "new", share }, history: [] }, host) === "new");
  expect(Math.abs(chosen(20).length - 200)).toBeLessThan(60);
  expect(chosen(40)).toEqual(expect.arrayContaining([...chosen(20)]));
  expect([chosen(100).length, versionFor({ skill: "s", stable: "old", history: [] }, "a")]).toEqual([1_000, "old"]);
});
