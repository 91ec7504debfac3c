import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { htmlToText } from "../../../plugins/workspace-tools/operations/html-text.ts";
import { openWorkspace } from "./workspace-kit.ts";

/** A server with configurable answers on its own address. */
async function serve(listener: RequestListener, host = "127.0.0.1"): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://${host}:${(server.address() as AddressInfo).port}`;
}

const send =
  (type: string, body: string | Buffer, status = 200): RequestListener =>
  (_request, response) =>
    void response.writeHead(status, { "content-type": type }).end(body);

describe("web_fetch", () => {
  test("returns the text of a page, or its source on request", async () => {
    const html = "<html><head><title>Ti &amp; tle</title><script>no()</script></head><body><p>Hello <b>you</b></p></body></html>";
    const url = await serve(send("text/html; charset=utf-8", html));
    const { text } = await openWorkspace();
    expect(await text("web_fetch", { url })).toBe(`Contents of ${url}:\n# Ti & tle\n\nHello you`);
    expect(await text("web_fetch", { url, raw: true })).toBe(`Contents of ${url}:\n${html}`);
  });

  test("returns a long text in parts, and says where to continue", async () => {
    const url = await serve(send("text/plain", "0123456789".repeat(600)));
    const { text } = await openWorkspace();
    const first = await text("web_fetch", { url });
    expect(first).toBe(
      `Contents of ${url}:\n${"0123456789".repeat(500)}\n\n<error>Content truncated. Call the web_fetch tool with a start_index of 5000 to get more content.</error>`,
    );
    expect(await text("web_fetch", { url, start_index: 5000 })).toBe(`Contents of ${url}:\n${"0123456789".repeat(100)}`);
    expect(await text("web_fetch", { url, start_index: 5998, max_length: 1 })).toMatch(/:\n8\n\n<error>Content truncated/);
    expect(await text("web_fetch", { url, start_index: 6000 })).toBe(`Contents of ${url}:\n<error>No more content available.</error>`);
  });

  test("follows redirects on the same host, and reports others", async () => {
    const other = await serve(send("text/plain", "SECRET"), "localhost");
    const url = await serve((request, response) => {
      if (request.url === "/here") response.writeHead(302, { location: "/there" }).end();
      else if (request.url === "/away") response.writeHead(302, { location: `${other}/x` }).end();
      else response.end("arrived");
    });
    const { call, text } = await openWorkspace();
    expect(await text("web_fetch", { url: `${url}/here` })).toBe(`Contents of ${url}/here:\narrived`);
    expect(await call("web_fetch", { url: `${url}/away` })).toMatchObject({
      resultType: "failure",
      textResultForLlm: `Fetching ${url}/away failed: it redirects to another host. Call web_fetch with ${other}/x instead.`,
    });
  });

  test.each<[why: string, listener: RequestListener, expected: RegExp]>([
    ["an error of the server", send("text/html", "<p>no", 404), /failed: the server answered with HTTP status 404\.$/],
    ["what is not a text", send("image/png", Buffer.from([0, 1])), /failed: it is not text but image\/png\.$/],
    ["bytes without a type", send("application/octet-stream", Buffer.from([0, 1])), /failed: it is not text/],
    ["a connection that breaks", (request) => void request.socket.destroy(), /failed: The request to 127\.0\.0\.1:\d+ failed/],
    ["redirects without end", (_request, response) => void response.writeHead(302, { location: "/" }).end(), /redirects too many times/],
  ])("says what went wrong: %s", async (_why, listener, expected) => {
    const url = await serve(listener);
    const { call } = await openWorkspace();
    expect(await call("web_fetch", { url })).toMatchObject({ resultType: "failure", textResultForLlm: expect.stringMatching(expected) });
  });

  test.each(["file:///etc/passwd", "ftp://a.example/x", "javascript:alert(1)", "no address", "http://user:pass@a.example/"])(
    "refuses %s without asking the user",
    async (url) => {
      const { call, asked } = await openWorkspace();
      expect((await call("web_fetch", { url })).resultType).toBe("failure");
      expect(asked).toEqual([]);
    },
  );

  test("reads no more of an endless response than it returns", async () => {
    const url = await serve((_request, response) => {
      response.writeHead(200, { "content-type": "text/plain" });
      const more = (): void => void (response.destroyed || response.write("x".repeat(65_536), more));
      more();
    });
    const { text } = await openWorkspace();
    expect(await text("web_fetch", { url, start_index: 5 * 1024 * 1024 - 3 })).toBe(
      `Contents of ${url}:\nxxx\n\n[The page is larger than the limit; only its beginning was read.]`,
    );
  });

  test("a response that never ends is aborted with the call", async () => {
    let isClosed = (): void => {};
    const closed = new Promise<void>((resolve) => {
      isClosed = resolve;
    });
    let isAsked = (): void => {};
    const asked = new Promise<void>((resolve) => {
      isAsked = resolve;
    });
    const url = await serve((request) => {
      request.socket.on("close", isClosed);
      isAsked();
    });
    const { session } = await openWorkspace();
    const controller = new AbortController();
    const call = session.callTool("web_fetch", { url }, { signal: controller.signal });
    await asked;
    controller.abort();
    expect((await call).resultType).toBe("failure");
    await closed;
  });
});

describe("htmlToText", () => {
  test.each<[html: string, expected: string]>([
    ["plain", "plain"],
    ["<h1>A</h1><h2>B</h2><p>c</p>", "# A\n\n## B\n\nc"],
    ["<ul><li>one<li>two</ul>", "- one\n- two"],
    ['<a href="/x?a=1&amp;b=2">link</a>', "[link](https://site.example/x?a=1&b=2)"],
    ["<a href='javascript:x()'>no</a> <a name=y>none</a> <a href=#f>here</a>", "no none here"],
    ["<pre>  keep\n   this</pre>", "```\n  keep\n   this\n```"],
    ["use <code>f()</code> here", "use `f()` here"],
    ["a<br>b", "a\nb"],
    ["<table><tr><td>1<td>2</tr></table>", "12"],
    ["<table><tr><td>1</td><td>2</td></tr></table>", "1 | 2 |"],
    ["<!-- <p>no</p> -->yes", "yes"],
    ["<style>p{}</style><script>if (a < b) '</p>'</script>yes", "yes"],
    ["<noscript><p>no</p></noscript><svg><text>no</text></svg>yes", "yes"],
    ["1 < 2 & 3 &gt; 2 &unknown; &#65;&#x42;&#0;&#xD800;", "1 < 2 & 3 > 2 &unknown; AB\ufffd\ufffd"],
    ["caf&eacute; &rarr; &notin; &amp;amp; &copy2026 &Aacute", "café → ∉ &amp; ©2026 Á"],
    ["Donau&shy;dampf&nbsp;&nbsp;schiff", "Donaudampf schiff"],
    [
      "<a href=/x?a&eacute;=1>l</a> <a href=''>none</a> <a HREF='/y' href='/z'>m</a>",
      "[l](https://site.example/x?a%C3%A9=1) [none](https://site.example/page) [m](https://site.example/y)",
    ],
    ["<head><title>T<body><p>text", "# T<body><p>text"],
    ["<head><meta charset=x><body>text", "text"],
    ['<p title="a > b">text</p>', "text"],
    ["text<p title='never closed", "text"],
    ["text</script></pre></p>", "text"],
    ["a\n\n\n   b", "a b"],
  ])("%j", (html, expected) => {
    expect(htmlToText(html, "https://site.example/page")).toBe(expected);
  });

  test.each([
    "<",
    "<a ",
    "<a href=",
    '<a href="',
    "<!--",
    "<script>",
    "<pre>",
    "&",
    "&#",
    "<p>",
    "</p>",
    "<svg>",
    '<p a="',
    "<title>",
    "  \n",
    "<!",
  ])("takes linear time for %j repeated", (part) => {
    // Quadratic time would exceed the test's time limit.
    expect(typeof htmlToText(part.repeat(200_000), "https://site.example/")).toBe("string");
  });
});
