import { nearestToolName } from "../../tools/tool.ts";
import type { ScaffoldFiles } from "./write-scaffold.ts";

/** A working plugin with one tool, a configuration and its test. */
export function pluginFiles(name: string): ScaffoldFiles {
  const tool = nearestToolName(name.replaceAll("-", "_"));
  return { "plugin.ts": pluginModule(name, tool), "test/plugin.test.mjs": pluginTest(tool) };
}

function pluginModule(name: string, tool: string): string {
  return `import { definePlugin, defineTool } from "skillhost";

interface Config {
  /** The word that greets. */
  readonly greeting: string;
}

export default definePlugin<Config>({
  name: ${JSON.stringify(name)},
  version: "0.1.0",
  configSchema: {
    type: "object",
    properties: { greeting: { type: "string", minLength: 1, default: "Hello" } },
    additionalProperties: false,
  },
  activate(api) {
    api.addTools(
      defineTool<{ name: string }>(${JSON.stringify(tool)}, {
        description: "Returns a greeting for a person. Use it when a person introduces themselves.",
        parameters: {
          type: "object",
          properties: { name: { type: "string", minLength: 1, description: "The person's name, as they spelled it." } },
          required: ["name"],
        },
        handler: ({ name }) => \`\${api.config.greeting}, \${name}!\`,
      }),
    );
    // Close here what you open: api.onDispose(() => connection.close());
  },
});
`;
}

function pluginTest(tool: string): string {
  return `import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { createTestHost } from "skillhost/testing";

const use = fileURLToPath(new URL("..", import.meta.url));

async function open(config) {
  return createTestHost({ plugins: [{ use, config }], skillDirectories: [], watch: false });
}

test("greets a person by name", async () => {
  const host = await open();
  try {
    assert.equal((await host.call(${JSON.stringify(tool)}, { name: "Ada" })).textResultForLlm, "Hello, Ada!");
  } finally {
    await host.close();
  }
});

test("uses the configured greeting", async () => {
  const host = await open({ greeting: "Good day" });
  try {
    assert.equal((await host.call(${JSON.stringify(tool)}, { name: "Ada" })).textResultForLlm, "Good day, Ada!");
  } finally {
    await host.close();
  }
});

test("does not start with an invalid configuration", async () => {
  const { host, close } = await open({ greeting: 1 });
  try {
    assert.deepEqual(host.plugins.map(({ state }) => state), ["failed"]);
    assert.match(host.diagnostics[0].message, /greeting/);
  } finally {
    await close();
  }
});
`;
}
