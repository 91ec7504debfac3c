import { rmSync } from "node:fs";

for (const path of process.argv.slice(2)) rmSync(new URL(`../${path}`, import.meta.url), { recursive: true, force: true });
