// Runs every check, continues after a failure, and ends with one line that counts tests and steps together.
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";

const npm = process.platform === "win32" ? "npm.cmd" : "npm";
const scratch = mkdtempSync(join(tmpdir(), "skillhost-ci-"));
/** Full name of a test, or of a group of tests → why it may be skipped. A skip that is not in here fails the run. */
const allowedSkips = JSON.parse(readFileSync(new URL("../.ci/allowed-skips.json", import.meta.url), "utf8"));
const failed = [];
let [passed, skipped] = [0, 0];

function step(title, args) {
  console.log(`\n== ${title}: npm ${args.join(" ")}`);
  const started = Date.now();
  const { status } = spawnSync(npm, args, { stdio: "inherit", shell: process.platform === "win32" });
  console.log(`== ${title}: ${status === 0 ? "ok" : `exit ${status}`}, ${((Date.now() - started) / 1000).toFixed(1)} s`);
  if (status === 0) passed++;
  else failed.push(title);
}

/** A step that may have to be left out; it says so in a line that begins with "skipped:". */
function optionalStep(title, args) {
  console.log(`\n== ${title}: npm ${args.join(" ")}`);
  const { status, stdout } = spawnSync(npm, args, {
    stdio: ["inherit", "pipe", "inherit"],
    encoding: "utf8",
    shell: process.platform === "win32",
  });
  console.log(stdout);
  if (status !== 0) failed.push(title);
  else if (/^skipped:/m.test(stdout)) countSkip(title);
  else passed++;
}

function countSkip(name) {
  skipped++;
  const reason = Object.entries(allowedSkips).find(([allowed]) => name === allowed || name.startsWith(`${allowed} `))?.[1];
  console.log(`skipped: ${name}: ${reason ?? "no reason on record"}`);
  if (reason === undefined) failed.push(`skip without a reason on record: ${name}`);
}

/** A run of vitest: it counts as a step, and each of its tests counts too. */
function tests(title, args) {
  const report = join(scratch, `${title}.json`);
  step(title, [...args, "--", "--reporter=dot", "--reporter=json", `--outputFile.json=${report}`]);
  countTests(title, report);
}

function countTests(title, report) {
  let results;
  try {
    results = JSON.parse(readFileSync(report, "utf8"));
  } catch {
    failed.push(`report of ${title} (the test run left none)`);
    return;
  }
  passed += results.numPassedTests;
  listSlowest(results.testResults);
  for (const file of results.testResults) {
    if (file.assertionResults.length === 0 && file.status === "failed") failed.push(file.name);
    for (const test of file.assertionResults) {
      if (test.status === "failed") failed.push(test.fullName);
      if (test.status !== "skipped" && test.status !== "pending" && test.status !== "todo") continue;
      countSkip(test.fullName);
    }
  }
}

/** Where the time of a run goes. */
function listSlowest(files) {
  const seconds = ({ startTime, endTime }) => Math.round((endTime - startTime) / 1000);
  const slowest = [...files].sort((a, b) => seconds(b) - seconds(a)).slice(0, 12);
  for (const file of slowest) console.log(`${String(seconds(file)).padStart(5)} s  ${relative(process.cwd(), file.name)}`);
}

/** The tests of the inspector need Chromium. Where it cannot be installed, they are skipped, and say so. */
function installBrowser() {
  const known = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
  if (existsSync(known) || process.platform !== "linux" || process.getuid?.() !== 0) return;
  console.log("\n== Chromium: apt-get install chromium");
  const options = { stdio: "ignore", timeout: 180_000 };
  const install = () => spawnSync("apt-get", ["install", "-y", "--no-install-recommends", "chromium"], options).status === 0;
  if (!install() && spawnSync("apt-get", ["update"], options).status === 0) install();
  console.log(`== Chromium: ${existsSync(known) ? "ok" : "it could not be installed"}`);
}

step("lint", ["run", "--silent", "lint"]);
step("types", ["run", "--silent", "typecheck"]);
step("unused code", ["run", "--silent", "knip"]);
step("build", ["run", "--silent", "build"]);
step("API reference", ["run", "--silent", "api", "--", "--check"]);
tests("tests", ["test"]);
tests("tests that start programs", ["run", "test:programs"]);
step("package", ["run", "--silent", "test:package"]);
// `npm run test:soak` by itself generates all inputs of the fuzzers.
process.env["SKILLHOST_SOAK_SHARE"] ??= "0.15";
tests("soak tests", ["run", "test:soak"]);
installBrowser();
tests("tests with big programs", ["run", "test:interop"]);
optionalStep("MCP conformance", ["run", "--silent", "conformance"]);

rmSync(scratch, { recursive: true, force: true });
for (const title of failed) console.log(`failed: ${title}`);
console.log(`${passed} passed, ${failed.length} failed, ${skipped} skipped`);
process.exitCode = failed.length === 0 ? 0 : 1;
