// OpenTelemetry: spans and metrics in a file, with captured content, as part of the program's own trace.
import { readFileSync } from "node:fs";
import { CopilotClient, defineTool } from "@github/copilot-sdk";

const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const client = new CopilotClient({
  gitHubToken: "token-of-the-guide",
  logLevel: "error",
  telemetry: { filePath: "otel.jsonl", exporterType: "file", sourceName: "guide", captureContent: true },
  onGetTraceContext: () => ({ traceparent, tracestate: "vendor=1" }),
});
let called;
const session = await client.createSession({
  model: "claude-sonnet-4.5",
  onPermissionRequest: () => ({ kind: "approve-once" }),
  tools: [
    defineTool("echo", {
      description: "Echoes a value",
      parameters: { type: "object", properties: { value: { type: "string" } } },
      handler: ({ value }, invocation) => {
        called = invocation.traceparent;
        console.log("tracestate:", invocation.tracestate);
        return value;
      },
    }),
  ],
});
await session.sendAndWait({ prompt: "Echo a marker" });
await session.disconnect();
await client.stop();

const records = readFileSync("otel.jsonl", "utf8")
  .trimEnd()
  .split("\n")
  .map((line) => JSON.parse(line));
// The phases of starting are each runtime's own.
const spans = records.filter(({ type, name }) => type === "span" && !name.startsWith("session."));
const names = new Map(spans.map(({ spanId, name }) => [spanId, name]));
const lines = new Set();
for (const { name, kind, parentSpanId, status, attributes, events, traceId, instrumentationScope } of spans) {
  lines.add(
    `span: ${name} ${kind} in ${names.get(parentSpanId) ?? parentSpanId} ${JSON.stringify(status)} ${instrumentationScope.name} ${traceId}`,
  );
  for (const attribute of Object.keys(attributes)) lines.add(`attribute: ${name} ${attribute}`);
  for (const event of events) lines.add(`event: ${name} ${event.name} ${Object.keys(event.attributes).sort()}`);
}
for (const { type, name, unit, description, dataPoints } of records) {
  if (type !== "metric") continue;
  const sets = new Set(dataPoints.map((point) => Object.keys(point.attributes).sort().join()));
  lines.add(`metric: ${name} ${unit} ${description} ${[...sets].sort().join(" | ")}`);
  lines.add(`buckets: ${name} ${JSON.stringify(dataPoints[0].value.buckets?.boundaries)}`);
}
for (const key of Object.keys(spans[0])) lines.add(`member: ${key}`);
lines.add(`resource: ${Object.keys(spans[0].resource.attributes).sort()} ${spans[0].resource.schemaUrl}`);
lines.add(`called within: ${names.get(called?.split("-")[2])}`);
const echo = spans.find(({ name, attributes }) => name === "execute_tool echo" && "gen_ai.tool.call.result" in attributes);
lines.add(`call: ${echo.attributes["gen_ai.tool.call.arguments"]} ${echo.attributes["gen_ai.tool.call.result"]}`);
for (const line of [...lines].sort()) console.log(line);
