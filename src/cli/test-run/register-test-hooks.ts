// Loaded first in each process of a test run: from then on Node.js resolves and loads modules with test-hooks.ts.
import * as nodeModule from "node:module";

const hooks = new URL("./test-hooks.js", import.meta.url);
const { registerHooks } = nodeModule as { registerHooks?: (hooks: object) => unknown };
if (registerHooks === undefined) nodeModule.register(hooks);
else {
  // Node.js 22.15 and later run hooks in the same thread.
  const { resolve, load } = (await import(hooks.href)) as typeof import("./test-hooks.ts");
  registerHooks({ resolve, load });
}
