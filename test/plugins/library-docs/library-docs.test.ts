import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { libraries } from "../../../plugins/library-docs/libraries.ts";
import { createHost } from "../../../src/host/create-host.ts";
import type { Session } from "../../../src/session/session.ts";
import type { PermissionAsk, ToolResult } from "../../../src/tools/tool.ts";

interface Answer {
  readonly status?: number;
  readonly body?: string | object;
  readonly headers?: Record<string, string>;
  /** Does not answer until the caller disconnects. */
  readonly isSilent?: boolean;
}

let service: Server;
let address: string;
let answers: Answer[] = [];
let requests: IncomingMessage[] = [];

beforeAll(async () => {
  service = createServer((request, response) => {
    requests.push(request);
    const { status = 200, body = "", headers = {}, isSilent } = answers.shift() ?? { status: 404 };
    if (isSilent) return;
    response.writeHead(status, headers).end(typeof body === "string" ? body : JSON.stringify(body));
  });
  await new Promise<void>((resolve) => service.listen(0, "127.0.0.1", resolve));
  address = `http://127.0.0.1:${(service.address() as AddressInfo).port}`;
});

afterAll(() => {
  service.closeAllConnections();
  service.close();
});

beforeEach(() => {
  answers = [];
  requests = [];
});

interface Opened {
  readonly session: Session;
  readonly asked: PermissionAsk[];
  call(name: string, args: object): Promise<ToolResult>;
}

async function open(config?: object): Promise<Opened> {
  const host = await createHost({
    plugins: [config === undefined ? "skillhost/plugins/library-docs" : { use: "skillhost/plugins/library-docs", config }],
    skillDirectories: [],
    watch: false,
  });
  onTestFinished(() => host.close());
  expect(host.diagnostics).toEqual([]);
  const asked: PermissionAsk[] = [];
  const session = await host.createSession({
    persist: false,
    onPermissionRequest: (request) => {
      asked.push(request);
      return { kind: "approve-once" };
    },
  });
  return { session, asked, call: (name, args) => session.callTool(name, args) };
}

const online = (extra: object = {}): Promise<Opened> => open({ context7: true, baseUrl: `${address}/api`, ...extra });

describe("bundled documentation", () => {
  test.for([
    ["playwright", "wait for element", "Auto-waiting"],
    ["selenium", "explicit wait", "WebDriverWait"],
    ["cucumber", "step definitions", "@When"],
    ["gherkin", "scenario outline", "Examples"],
    ["java", "records", "record Point"],
  ] as const)("%s answers a question about %s without asking the user", async ([libraryId, query, holds]) => {
    const { call, asked } = await open();
    const { resultType, textResultForLlm } = await call("get_library_docs", { libraryId, query });
    expect(resultType).toBe("success");
    expect(textResultForLlm).toContain(holds);
    expect(textResultForLlm.length).toBeLessThanOrEqual(4000);
    expect(asked).toEqual([]);
  });

  test("is found by its aliases", async () => {
    const { call } = await open();
    for (const { id, aliases } of libraries) {
      for (const libraryName of [id, ...aliases]) {
        expect((await call("resolve_library_id", { libraryName })).textResultForLlm).toMatch(new RegExp(`^${id} \\(bundled`));
      }
    }
  });

  test("is the only one unless Context7 is enabled", async () => {
    const { call } = await open();
    const { resultType, textResultForLlm } = await call("resolve_library_id", { libraryName: "react" });
    expect(resultType).toBe("failure");
    expect(textResultForLlm).toContain("Bundled: playwright, selenium, cucumber, gherkin, java.");
    expect((await call("get_library_docs", { libraryId: "/facebook/react" })).resultType).toBe("failure");
    expect(requests).toEqual([]);
  });
});

describe("Context7", () => {
  test("finds other libraries once that is permitted", async () => {
    const { call, asked } = await online({ apiKey: "ctx7sk-secret" });
    answers = [
      { body: { results: [{ id: "/facebook/react", title: "React", description: "Views.\nOf components." }], searchFilterApplied: false } },
    ];
    expect((await call("resolve_library_id", { libraryName: "react js" })).textResultForLlm).toBe(
      "/facebook/react (Context7): React. Views. Of components.",
    );
    expect(asked).toMatchObject([{ kind: "url", url: `${address}/api/v2/libs/search?libraryName=react+js&query=react+js` }]);
    expect(requests[0]?.headers.authorization).toBe("Bearer ctx7sk-secret");
    expect(JSON.stringify(asked)).not.toContain("ctx7sk-secret");
  });

  test("may answer with a bare list, whose invalid entries are skipped", async () => {
    const { call } = await online();
    answers = [{ body: [null, 1, { id: "no-id" }, { id: "/a/b", name: "B" }, { id: "/a/c" }] }];
    expect((await call("resolve_library_id", { libraryName: "bee" })).textResultForLlm).toBe("/a/b (Context7): B\n/a/c (Context7): /a/c");
  });

  test.for<{ title: string; answer: Answer; says: string }>([
    { title: "no results", answer: { body: { results: [] } }, says: 'Context7 knows no library "react".' },
    { title: "something that is not valid JSON", answer: { body: "<html>" }, says: 'Context7 knows no library "react".' },
    {
      title: "429",
      answer: { status: 429, body: { error: "rate_limited", message: "Slow down." }, headers: { "retry-after": "7" } },
      says: "Context7 answered with HTTP status 429: Slow down. Try again after 7 seconds.",
    },
    { title: "500 without words", answer: { status: 500 }, says: "Context7 answered with HTTP status 500: There was no explanation." },
  ])("a search that is answered by $title fails and names the bundled libraries", async ({ answer, says }) => {
    const { call } = await online();
    answers = [answer];
    const { resultType, textResultForLlm } = await call("resolve_library_id", { libraryName: "react" });
    expect(resultType).toBe("failure");
    expect(textResultForLlm).toBe(`${says} Bundled: playwright, selenium, cucumber, gherkin, java.`);
  });

  test("that does not answer is reported, with the bundled libraries", async () => {
    const closed = createServer();
    await new Promise<void>((resolve) => closed.listen(0, "127.0.0.1", resolve));
    const { port } = closed.address() as AddressInfo;
    await new Promise((resolve) => closed.close(resolve));
    const { call } = await open({ context7: true, baseUrl: `http://127.0.0.1:${port}` });
    const { textResultForLlm } = await call("resolve_library_id", { libraryName: "react" });
    expect(textResultForLlm).toBe("Context7 cannot be reached. Bundled: playwright, selenium, cucumber, gherkin, java.");
  });

  test.for<{ title: string; replies: readonly Answer[]; kind: string; says: string }>([
    { title: "200 with text", replies: [{ body: "### Hooks\n\nuseState" }], kind: "success", says: "### Hooks\n\nuseState" },
    { title: "200 with nothing", replies: [{ body: " \n" }], kind: "failure", says: 'Context7 has no documentation of "/facebook/react".' },
    {
      title: "202",
      replies: [{ status: 202, body: { error: "library_not_finalized", message: "Still parsing." } }],
      kind: "failure",
      says: "Context7 answered with HTTP status 202: Still parsing.",
    },
    {
      title: "301 to another library",
      replies: [{ status: 301, body: { error: "library_redirected", redirectUrl: "/reactjs/react" } }, { body: "moved here" }],
      kind: "success",
      says: "moved here",
    },
    {
      title: "301 twice",
      replies: [
        { status: 301, body: { redirectUrl: "/a/b" } },
        { status: 301, body: { redirectUrl: "/c/d" } },
      ],
      kind: "failure",
      says: "Context7 answered with HTTP status 301: It has moved to /c/d.",
    },
    {
      title: "301 to another host",
      replies: [{ status: 301, body: { redirectUrl: "https://elsewhere.test/" }, headers: { location: "https://elsewhere.test/" } }],
      kind: "failure",
      says: "Context7 answered with HTTP status 301: There was no explanation.",
    },
    {
      title: "404",
      replies: [{ status: 404, body: { error: "library_not_found", message: "No." } }],
      kind: "failure",
      says: 'Context7 has no documentation of "/facebook/react".',
    },
  ])("docs that are answered by $title", async ({ replies, kind, says }) => {
    const { call } = await online();
    answers = [...replies];
    const { resultType, textResultForLlm } = await call("get_library_docs", { libraryId: "/facebook/react", query: "hooks" });
    expect(resultType).toBe(kind);
    expect(textResultForLlm.startsWith(says)).toBe(true);
    expect(answers).toEqual([]);
  });

  test("returns at most 4,000 characters of a long text, and says so", async () => {
    const { call } = await online();
    answers = [{ body: "x".repeat(10_000) }];
    const { textResultForLlm } = await call("get_library_docs", { libraryId: "/facebook/react", query: "hooks" });
    expect(textResultForLlm).toHaveLength(4000);
    expect(textResultForLlm.endsWith("The documentation continues. Narrow your query.")).toBe(true);
  });

  test("is not asked for invalid ids or bundled libraries", async () => {
    const { call } = await online();
    expect((await call("get_library_docs", { libraryId: "react" })).textResultForLlm).toContain("resolve_library_id");
    expect((await call("get_library_docs", { libraryId: "/microsoft/playwright", query: "trace" })).resultType).toBe("success");
    expect(requests).toEqual([]);
  });
});
