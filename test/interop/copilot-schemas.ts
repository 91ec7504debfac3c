import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, createReadStream, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { fileURLToPath } from "node:url";
import { extract } from "tar";
import { contractPackage, hasSchemas, schemaFiles, schemaFolder } from "../servers/copilot/wire-contract.ts";

const strictReader = fileURLToPath(new URL("copilot-python/strict_reader.py", import.meta.url));

/**
 * Runs before `npm run test:interop`: the tests of the Copilot protocol validate messages against the schemas if they are installed.
 * After the tests, all messages are read once more as the SDKs of other languages read them.
 */
export async function setup(): Promise<(() => void) | undefined> {
  if (!hasSchemas) {
    try {
      await installSchemas();
    } catch (error) {
      // The test that reads the schemas is then skipped with this reason.
      process.stderr.write(`The schemas of ${contractPackage.name} cannot be installed: ${String(error).slice(0, 500)}\n`);
      return undefined;
    }
  }
  const frames = mkdtempSync(join(tmpdir(), "skillhost-frames-"));
  process.env["SKILLHOST_TEST_FRAMES"] = frames;
  return () => {
    try {
      readStrictly(readdirSync(frames).map((file) => join(frames, file)));
    } finally {
      rmSync(frames, { recursive: true, force: true });
    }
  };
}

/** Prints all messages that a strict client cannot read, and makes the run fail if there are any. */
function readStrictly(files: readonly string[]): void {
  if (files.length === 0) return;
  const { status, stdout, error } = spawnSync("python3", [strictReader, schemaFolder, ...files], {
    encoding: "utf8",
    env: { ...process.env, PYTHONDONTWRITEBYTECODE: "1" },
  });
  if (error !== undefined) {
    process.stderr.write(`The messages were not read as the SDKs of other languages do: python3 cannot be started (${error.message}).\n`);
    return;
  }
  process.stdout.write(`Strict readers: ${stdout}`);
  if (status === 0) return;
  process.stderr.write("Strict clients cannot read all messages; the lines above name them.\n");
  // An error that is thrown after the tests does not change the exit code.
  process.exitCode = 1;
}

/** Extracts the schemas from the tarball of the official runtime after its digest was verified. */
async function installSchemas(): Promise<void> {
  const { name, version, integrity } = contractPackage;
  const scratch = mkdtempSync(join(tmpdir(), "skillhost-schemas-"));
  try {
    const args = ["pack", `${name}@${version}`, "--pack-destination", scratch, "--json"];
    const [packed] = JSON.parse(execFileSync("npm", args, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"], timeout: 280_000 }));
    const tarball = join(scratch, packed.filename);
    const hash = createHash("sha512");
    await pipeline(createReadStream(tarball), hash);
    const found = `sha512-${hash.digest("base64")}`;
    if (found !== integrity) throw new Error(`${name}@${version} has the integrity ${found}, not ${integrity}.`);
    const wanted = new Set(schemaFiles.map((file) => `package/schemas/${file}`));
    await extract({ file: tarball, cwd: scratch, strip: 2, filter: (path) => wanted.has(path) });
    rmSync(tarball);
    mkdirSync(schemaFolder, { recursive: true });
    for (const file of schemaFiles) copyFileSync(join(scratch, file), join(schemaFolder, file));
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}
