import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { silentLogger } from "../../../src/base/logger.ts";
import { createHost } from "../../../src/host/create-host.ts";
import { approveAll } from "../../../src/tools/tool.ts";

/** What a host gives of a skill: the texts of its tools, its prompt and a resource, and how its trust stands. */
interface Uses {
  readonly status: string | undefined;
  readonly texts: readonly string[];
}

// Runs in a mount namespace of its own: what is mounted here goes with this process.
const [base = "", key = "", source = "", target = "", moment = ""] = process.argv.slice(2);
const mount = (): void => void execFileSync("mount", ["--bind", source, target]);
const globals = globalThis as { afterCheck?: () => void; strangers?: number };
if (moment === "before") mount();
if (moment === "loading") {
  globals.afterCheck = () => {
    delete globals.afterCheck;
    mount();
  };
}

const host = await createHost({
  skillDirectories: [join(base, "place/skills")],
  plugins: [],
  watch: false,
  logger: silentLogger,
  workingDirectory: base,
  sessionsDirectory: join(base, "sessions"),
  approvalsDirectory: join(base, "approvals"),
  trust: { policy: { project: "require" }, keys: [key] },
});
const session = await host.createSession({ onPermissionRequest: approveAll });
await session.ready();

async function use(): Promise<Uses> {
  const called = session.listTools().map(async ({ name }) => `${name}: ${(await session.callTool(name, {})).textResultForLlm}`);
  const resource = session.readResource("skill://greeter/assets/data.txt").then(
    (contents) => [JSON.stringify(contents)],
    () => [],
  );
  const prompt = session.getPrompt("greeter").then(
    (messages) => [JSON.stringify(messages)],
    () => [],
  );
  const texts = [...(await Promise.all(called)), ...(await resource), ...(await prompt)].map((text) => text.trim());
  return { status: host.skills.find(({ name }) => name === "greeter")?.trust?.status, texts };
}

const rounds: Uses[] = [];
if (moment === "serving") mount();
rounds.push(await use());
await host.reload();
rounds.push(await use());
execFileSync("umount", [target]);
await host.reload();
rounds.push(await use());
await host.close();
process.stdout.write(`${JSON.stringify({ rounds, strangers: globals.strangers ?? 0 })}\n`);
