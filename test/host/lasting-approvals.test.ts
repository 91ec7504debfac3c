import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TempSkill, tempSkill } from "skillhost/testing";
import { beforeEach, expect, test } from "vitest";
import { silentLogger } from "../../src/base/logger.ts";
import { createHost } from "../../src/host/create-host.ts";
import type { Host } from "../../src/host/host.ts";
import type { SessionOptions } from "../../src/session/session-config.ts";
import { emptyFolder } from "../io/temp-folder.ts";

let home: string;

beforeEach(() => {
  const before = process.env["SKILLHOST_HOME"];
  home = emptyFolder();
  process.env["SKILLHOST_HOME"] = home;
  return () => {
    process.env["SKILLHOST_HOME"] = before;
  };
});

const skillNamed = (name: string): TempSkill =>
  tempSkill(
    {
      "SKILL.md": `---\nname: ${name}\ndescription: Deploys.\n---\nx\n`,
      "tools/deploy.mjs": `import { defineTool } from "skillhost";
export default defineTool("deploy", { description: "Deploys.", handler: () => "deployed by ${name}" });`,
    },
    { name },
  );

const hostOf = (skill: TempSkill): Promise<Host> =>
  createHost({ skillDirectories: [skill.root], watch: false, logger: silentLogger, workingDirectory: emptyFolder() });

/** Calls the tool in a new session whose user gives this answer. */
async function deploy(
  host: Host,
  answer: { readonly kind: string },
  options: SessionOptions = {},
): Promise<{ asked: number; result: string }> {
  let asked = 0;
  const onPermissionRequest = (() => {
    asked++;
    return answer;
  }) as SessionOptions["onPermissionRequest"];
  await using session = await host.createSession({ ...options, onPermissionRequest });
  const { resultType } = await session.callTool("deploy", {});
  return { asked, result: resultType };
}

const forEver = { kind: "approve-permanently" };
const no = { kind: "reject" };

test("a permanent approval holds in the next session, and in another host with the same home", async () => {
  using skill = skillNamed("ours");
  await using host = await hostOf(skill);
  expect(await deploy(host, forEver)).toEqual({ asked: 1, result: "success" });
  expect(readdirSync(join(home, "approvals"))).toHaveLength(1);
  expect(await deploy(host, no)).toEqual({ asked: 0, result: "success" });
  await using other = await hostOf(skill);
  expect(await deploy(other, no)).toEqual({ asked: 0, result: "success" });
});

test("a permanent approval does not cover a tool with the same name from another source, and does not hold in another home", async () => {
  using skill = skillNamed("ours");
  using stranger = skillNamed("stranger");
  await using host = await hostOf(skill);
  await deploy(host, forEver);
  const pushed = { name: "deploy", description: "Deploys.", handler: () => "pushed" };
  expect(await deploy(host, no, { tools: [pushed] })).toEqual({ asked: 1, result: "rejected" });
  await using other = await hostOf(stranger);
  expect(await deploy(other, no)).toEqual({ asked: 1, result: "rejected" });
  process.env["SKILLHOST_HOME"] = emptyFolder();
  await using elsewhere = await hostOf(skill);
  expect(await deploy(elsewhere, no)).toEqual({ asked: 1, result: "rejected" });
});

test("a damaged approval is requested again, and the host reports its file", async () => {
  using skill = skillNamed("ours");
  await using host = await hostOf(skill);
  await deploy(host, forEver);
  const [name] = readdirSync(join(home, "approvals"));
  const file = join(home, "approvals", name as string);
  writeFileSync(file, "{");
  expect(await deploy(host, no)).toEqual({ asked: 1, result: "rejected" });
  expect(host.diagnostics).toContainEqual(expect.objectContaining({ code: "APPROVAL_UNREADABLE", file }));
});
