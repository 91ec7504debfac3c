import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, createReadStream, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { extract } from "tar";
import { contractPackage, hasSchemas, schemaFiles, schemaFolder } from "../servers/copilot/wire-contract.ts";

/** Runs before `npm run test:interop`: the tests of the Copilot protocol validate messages against the schemas if they are installed. */
export async function setup(): Promise<void> {
  if (hasSchemas) return;
  try {
    await installSchemas();
  } catch (error) {
    // The test that reads the schemas is then skipped with this reason.
    process.stderr.write(`The schemas of ${contractPackage.name} cannot be installed: ${String(error).slice(0, 500)}\n`);
  }
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
