// An MCP server with an app, for tests: `node app-server.mjs <file with the HTML of the app> [origin that the app may reach]`. The address
// of the app is in no list of resources, as the protocol allows.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

const [, , file, domain] = process.argv;
const schema = { type: "object", properties: { item: { type: "string" } } };
const page = "ui://shop/cart";
const tools = [
  { name: "show_cart", description: "Shows the cart.", inputSchema: schema, _meta: { ui: { resourceUri: page } } },
  { name: "add_item", description: "Adds.", inputSchema: schema, _meta: { ui: { resourceUri: page, visibility: ["app"] } } },
  { name: "audit", description: "For models only.", inputSchema: schema, _meta: { ui: { visibility: ["model"] } } },
  { name: "broken", description: "Its page is not one.", inputSchema: schema, _meta: { ui: { resourceUri: "ui://shop/plain" } } },
];
const csp = domain === undefined ? undefined : { connectDomains: [domain, "https://a.example; script-src *"] };
const answers = {
  initialize: () => ({
    protocolVersion: "2025-06-18",
    capabilities: { tools: {}, resources: {} },
    serverInfo: { name: "shop", version: "1" },
  }),
  "tools/list": () => ({ tools }),
  "tools/call": ({ name, arguments: { item } }) => ({
    content: [{ type: "text", text: `${name} ${item}` }],
    structuredContent: { item, token: "kept for the app" },
    _meta: { of: name },
  }),
  "resources/list": () => ({ resources: [{ uri: "note://1", name: "note" }] }),
  "resources/templates/list": () => ({ resourceTemplates: [] }),
  "resources/read": ({ uri }) =>
    uri === page
      ? { contents: [{ uri, mimeType: "text/html;profile=mcp-app", text: readFileSync(file, "utf8"), _meta: { ui: { csp } } }] }
      : { contents: [{ uri, mimeType: "text/plain", text: `read ${uri}` }] },
  ping: () => ({}),
};
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) continue;
  const answer = answers[method];
  const reply = answer ? { result: answer(params) } : { error: { code: -32_601, message: "no such method" } };
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, ...reply })}\n`);
}
