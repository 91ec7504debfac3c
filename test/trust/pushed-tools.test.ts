import { join } from "node:path";
import { defineTool, type HostOptions, signTool } from "skillhost";
import { createTestHost, type TestHost } from "skillhost/testing";
import { describe, expect, onTestFinished, test } from "vitest";
import { tempFolder } from "../skills/kit.ts";
import { makeKey } from "./signatures/signing-kit.ts";

interface Fields {
  readonly description?: string;
  readonly metadata?: Readonly<Record<string, unknown>>;
}

const alice = makeKey();
const tool = (options: Fields = {}) => defineTool("lookup", { description: "Looks up.", handler: () => "found", ...options });
const signed = (options: Fields = {}, expires?: Date) => signTool(tool(options), { privateKey: alice.privateKey, expires });

async function open(options: HostOptions = {}, external: "require" | "warn" | "off" = "require"): Promise<TestHost> {
  const kit = await createTestHost({
    skillDirectories: [],
    packageSkills: false,
    ...options,
    trust: { policy: { external }, keys: [alice.text] },
  });
  onTestFinished(() => kit.close());
  return kit;
}

const names = ({ session }: TestHost): string[] => session.listTools().map(({ name }) => name);
const codes = ({ session }: TestHost): string[] => session.catalog.diagnostics.map(({ code }) => code);

test("a policy that requires signed pushed tools offers the signed one and omits the others", async () => {
  const kit = await open();
  await kit.session.setTools([signed(), defineTool("other", { description: "x", handler: () => "x" })]);
  expect([names(kit), codes(kit)]).toEqual([["lookup"], ["TRUST_TOOL_UNSIGNED"]]);
  expect((await kit.call("lookup")).textResultForLlm).toBe("found");
});

describe("a pushed tool is left out when its signature", () => {
  const mallory = makeKey("mallory");
  const changed = () => {
    const { metadata } = signed();
    return tool({ description: "Looks up, and sends your keys.", ...(metadata && { metadata }) });
  };
  const cases: readonly [string, () => ReturnType<typeof tool>, string][] = [
    ["is of another definition", changed, "TRUST_SIGNATURE_WRONG"],
    ["is of another tool", () => ({ ...signed(), name: "other" }), "TRUST_SIGNATURE_WRONG"],
    ["is by a key that is not trusted", () => signTool(tool(), { privateKey: mallory.privateKey }), "TRUST_KEY_UNKNOWN"],
    ["has run out", () => signed({}, new Date(Date.now() - 1000)), "TRUST_EXPIRED"],
    ["is not a signature", () => tool({ metadata: { "skillhost/signature": "trust me" } }), "TRUST_TOOL_UNSIGNED"],
  ];
  test.each(cases)("%s", async (_, make, code) => {
    const kit = await open();
    await kit.session.setTools([make()]);
    expect([names(kit), codes(kit)]).toEqual([[], [code]]);
  });
});

test("warn reports a wrong signature and offers the tool, and off checks nothing", async () => {
  const wrong = { ...signed(), name: "other" };
  const warned = await open({}, "warn");
  await warned.session.setTools([wrong, tool()]);
  expect([names(warned), codes(warned)]).toEqual([["lookup", "other"], ["TRUST_SIGNATURE_WRONG"]]);
  const off = await open({}, "off");
  await off.session.setTools([wrong]);
  expect(codes(off)).toEqual([]);
});

test("an approved definition is offered for every client that pushes it, and another definition is shown as a diff", async () => {
  const approvalsDirectory = join(tempFolder(), "approvals");
  const kit = await open({ approvalsDirectory });
  const client = kit.session.attach({ level: "connection", name: "client", answers: [] });
  client.setTools([tool()]);
  expect(names(kit)).toEqual([]);
  expect(await kit.host.heldTools()).toHaveLength(1);
  // Another program of the same user, such as the command line.
  const elsewhere = await open({ approvalsDirectory });
  expect(await elsewhere.host.heldTools()).toMatchObject([{ name: "lookup", reason: "new", definition: { description: "Looks up." } }]);
  expect(await kit.host.approveTools("lookup")).toBe(1);
  expect(names(kit)).toEqual(["lookup"]);
  expect(await elsewhere.host.heldTools()).toEqual([]);

  client.setTools([tool({ description: "Looks up, and sends your keys." })]);
  expect(names(kit)).toEqual([]);
  expect(await kit.host.heldTools()).toMatchObject([
    { reason: "changed", diff: ['- description: "Looks up."', '+ description: "Looks up, and sends your keys."'] },
  ]);
  client.setTools([tool()]);
  expect(names(kit)).toEqual(["lookup"]);
  const later = await open({ approvalsDirectory });
  await later.session.setTools([tool()]);
  expect(names(later)).toEqual(["lookup"]);
});
