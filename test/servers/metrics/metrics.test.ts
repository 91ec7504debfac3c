import { describe, expect, onTestFinished, test } from "vitest";
import { silentLogger } from "../../../src/base/logger.ts";
import { createHost } from "../../../src/host/create-host.ts";
import { HostMetrics, writeProcessMetrics } from "../../../src/servers/metrics/host-metrics.ts";
import { Histogram, MetricsText } from "../../../src/servers/metrics/metrics-text.ts";
import { type HealthSource, serveHealth } from "../../../src/servers/metrics/serve-health.ts";
import { approveAll } from "../../../src/tools/tool.ts";
import { skillMd, tempFolder } from "../../skills/kit.ts";

/** The values of a text in the format of Prometheus, by name and labels. Throws for a line that the format does not have. */
function readMetrics(text: string): ReadonlyMap<string, number> {
  const values = new Map<string, number>();
  const types = new Map<string, string>();
  expect(text.endsWith("\n")).toBe(true);
  for (const line of text.trimEnd().split("\n")) {
    const head = /^# (?:HELP \S+ .*|TYPE (\S+) (counter|gauge|histogram))$/.exec(line);
    if (head !== null) {
      // A metric is described once, before its values.
      if (head[1] !== undefined) {
        expect(types.has(head[1])).toBe(false);
        types.set(head[1], head[2] as string);
      }
      continue;
    }
    const value = /^([a-z_]+)(\{(?:[a-z]+="(?:[^"\\\n]|\\["\\n])*",?)+\})? (-?[\d.e+-]+)$/.exec(line);
    if (value === null) throw new Error(`Not a value: ${line}`);
    expect(types.has((value[1] as string).replace(/_(?:bucket|sum|count)$/, "")) || types.has(value[1] as string)).toBe(true);
    values.set(`${value[1]}${value[2] ?? ""}`, Number(value[3]));
  }
  return values;
}

describe("metrics", () => {
  test("values of a metric stand together, and names of any kind stay one label", () => {
    const text = new MetricsText();
    text.counter("calls_total", "Calls.", 1, { tool: 'a"b\\c\nd{}' }).counter("calls_total", "Calls.", 2, { tool: "e" });
    const times = new Histogram([1, 2]);
    for (const time of [0.5, 1, 1.5, 9]) times.add(time);
    text.histogram("times", "Times.", times);
    expect(String(text)).toBe(
      [
        "# HELP calls_total Calls.",
        "# TYPE calls_total counter",
        'calls_total{tool="a\\"b\\\\c\\nd{}"} 1',
        'calls_total{tool="e"} 2',
        "# HELP times Times.",
        "# TYPE times histogram",
        'times_bucket{le="1"} 2',
        'times_bucket{le="2"} 3',
        'times_bucket{le="+Inf"} 4',
        "times_sum 12",
        "times_count 4",
        "",
      ].join("\n"),
    );
    expect(readMetrics(String(text)).get("times_count")).toBe(4);
  });

  test("those of a host count its calls by tool and outcome, its sessions, skills and loads", async () => {
    const tool = (name: string, body: string): string =>
      `import { defineTool } from "skillhost";\nexport default defineTool("${name}", { description: "x", handler: () => { ${body} } });\n`;
    const folder = tempFolder({
      "skills/a/SKILL.md": skillMd("a"),
      "skills/a/tools/works.ts": tool("works", 'return "yes";'),
      "skills/a/tools/fails.ts": tool("fails", 'throw new Error("no");'),
    });
    await using host = await createHost({ skillDirectories: [`${folder}/skills`], plugins: [], watch: false, logger: silentLogger });
    using metrics = new HostMetrics(host);
    const read = (): ReadonlyMap<string, number> => {
      const text = new MetricsText();
      writeProcessMetrics(text);
      metrics.write(text);
      return readMetrics(String(text));
    };
    const session = await host.createSession({ persist: false, onPermissionRequest: approveAll });
    await session.callTool("works");
    await session.callTool("works");
    await session.callTool("fails");
    await host.callTool("works", {}, { allow: ["works"] });
    const values = read();
    expect(values.get('skillhost_tool_calls_total{tool="works",outcome="success"}')).toBe(3);
    expect(values.get('skillhost_tool_calls_total{tool="fails",outcome="failure"}')).toBe(1);
    expect(values.get('skillhost_tool_call_duration_seconds_count{tool="works"}')).toBe(3);
    expect(values.get('skillhost_tool_call_duration_seconds_bucket{tool="works",le="+Inf"}')).toBe(3);
    expect(values.get("skillhost_tool_calls_running")).toBe(0);
    expect(values.get("skillhost_sessions")).toBe(1);
    expect(values.get("skillhost_sessions_opened_total")).toBe(2);
    expect(values.get('skillhost_skills{state="active"}')).toBe(1);
    expect(values.get("skillhost_tools")).toBe(2);
    expect(values.get("process_resident_memory_bytes")).toBeGreaterThan(1e6);
    await session.disconnect();
    expect(read().get("skillhost_sessions")).toBe(0);
  });
});

describe("the server for health", () => {
  async function serve(source: Partial<HealthSource>): Promise<(path: string, options?: RequestInit) => Promise<Response>> {
    const server = await serveHealth({ unready: () => undefined, metrics: () => "up 1\n", ...source }, { host: "127.0.0.1", port: 0 });
    onTestFinished(() => server[Symbol.asyncDispose]());
    return (path, options) => fetch(`${server.url}${path}`, options);
  }

  test("answers whether the process lives, whether it takes work, and its metrics", async () => {
    let reason: string | undefined;
    const ask = await serve({ unready: () => reason });
    expect((await ask("/livez")).status).toBe(200);
    expect((await ask("/readyz")).status).toBe(200);
    reason = "The servers are away.";
    const refused = await ask("/readyz");
    expect([refused.status, await refused.text()]).toEqual([503, "The servers are away.\n"]);
    expect((await ask("/livez")).status).toBe(200);
    const metrics = await ask("/metrics");
    expect(metrics.headers.get("content-type")).toContain("version=0.0.4");
    expect(await metrics.text()).toBe("up 1\n");
  });

  test("refuses other methods, other paths and web pages, and says what has failed", async () => {
    const ask = await serve({
      metrics() {
        throw new Error("The host is closed.");
      },
    });
    expect((await ask("/metrics", { method: "POST" })).status).toBe(405);
    expect((await ask("/secrets")).status).toBe(404);
    expect((await ask("/metrics", { headers: { Origin: "https://a.example" } })).status).toBe(403);
    const failed = await ask("/metrics");
    expect([failed.status, await failed.text()]).toEqual([500, "The host is closed.\n"]);
  });

  test("a port that is in use is an error that names it", async () => {
    const server = await serveHealth({ unready: () => undefined, metrics: () => "" }, { host: "127.0.0.1", port: 0 });
    onTestFinished(() => server[Symbol.asyncDispose]());
    const port = Number(new URL(server.url).port);
    await expect(serveHealth({ unready: () => undefined, metrics: () => "" }, { host: "127.0.0.1", port })).rejects.toMatchObject({
      code: "HTTP_LISTEN",
      message: expect.stringContaining(String(port)),
    });
  });
});
