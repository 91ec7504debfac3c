import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createHttpHandler } from "../../src/skills/handlers/tool-handler.ts";

const requested: string[] = [];
const server = createServer((request, response) => {
  requested.push(request.url ?? "");
  response.end("done");
});
beforeAll(() => new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve)));
afterAll(() => new Promise((resolve) => server.close(resolve)));

const call = (path: string, args: Record<string, unknown>): Promise<{ resultType?: string; textResultForLlm?: string }> => {
  const handler = createHttpHandler({ method: "GET", url: `http://127.0.0.1:${(server.address() as AddressInfo).port}${path}` });
  return handler(args, { signal: new AbortController().signal } as never);
};

test.each([
  ["/users/${id}/delete", { id: ".." }],
  ["/users/${id}/delete", { id: "." }],
  ["/users/${a}${b}/x", { a: ".", b: "." }],
  ["/users/.${a}", { a: "." }],
  ["/users/%2e${a}", { a: "." }],
])("an argument cannot leave its place in %s", async (path, args) => {
  const before = requested.length;
  expect(await call(path, args)).toMatchObject({
    resultType: "failure",
    textResultForLlm: expect.stringContaining("is not allowed in this tool's URL"),
  });
  expect(requested.length).toBe(before);
});

test("dots within a segment and in a query are ordinary characters", async () => {
  expect(await call("/users/${id}?from=${q}", { id: "a..b", q: "../.." })).toMatchObject({ resultType: "success" });
  expect(requested.at(-1)).toBe("/users/a..b?from=..%2F..");
});
