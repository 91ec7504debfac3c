// What looking at signatures adds to loading: the same thousand skills unsigned, and signed where signatures are required.
import { generateKeyPairSync } from "node:crypto";
import { join } from "node:path";
import { built } from "./support/built.mjs";
import { childTask, inChild, median, timed } from "./support/measure.mjs";
import { goal, table, title } from "./support/report.mjs";
import { skillName, tempFolder, writeSkills } from "./support/skills.mjs";

const size = 1000;
const rounds = 7;

async function compare() {
  for (const form of ["handlers", "definitions"]) {
    title(`Signatures: ${form === "handlers" ? "modules that are handlers only" : "modules that define tools with zod"}, ${size} skills`);
    const { base, skills, remove } = tempFolder();
    try {
      writeSkills(skills, size, form);
      const key = await signAll(skills);
      const run = (mode, home) => inChild(import.meta.url, { skills, mode, home: join(base, home), key, size });
      run("off", "off");
      const cold = run("require", "kept");
      // Side by side, one after the other: what else the machine does falls on all of them alike.
      const runs = Array.from({ length: rounds }, (_, round) => ({
        off: run("off", "off"),
        warm: run("require", "kept"),
        first: run("require", `fresh-${round}`),
      }));
      const of = (which, what) => median(runs.map((each) => each[which][what]));
      const share = (which) => median(runs.map((each) => each[which].cpu / each.off.cpu - 1)) * 100;
      table([
        { "": "off", "wall ms": of("off", "wall"), "CPU ms": of("off", "cpu"), "added %": 0 },
        { "": "require", "wall ms": of("warm", "wall"), "CPU ms": of("warm", "cpu"), "added %": share("warm") },
        {
          "": "require, signatures never seen before",
          "wall ms": of("first", "wall"),
          "CPU ms": of("first", "cpu"),
          "added %": share("first"),
        },
      ]);
      goal(`signatures added to loading, ${form}`, share("warm"), 5, "% of CPU time");
      if (cold.signed !== size) throw new Error(`${cold.signed} of ${size} skills were loaded as signed`);
    } finally {
      remove();
    }
  }
  console.log("\nEach figure is a process of its own, the median of seven; the share is the median of the seven pairs.");
}

async function signAll(skills) {
  const { createHost } = await built("index.js");
  const { signFolder } = await built("trust/skill-signature.js");
  const { formatKey, publicKeyOf } = await built("trust/trusted-keys.js");
  const { privateKey } = generateKeyPairSync("ed25519");
  const publicKey = publicKeyOf(privateKey, "bench");
  const host = await createHost({ skillDirectories: [skills], watch: false, plugins: [], packageSkills: false });
  const session = await host.createSession({ persist: false });
  const signatures = new Map(session.listTools().map(({ name, signature }) => [name, signature]));
  for (const { name, version, folder, tools } of host.skills) {
    const own = new Map(tools.map((tool) => [tool, signatures.get(tool)]));
    const signed = await signFolder(folder, { skill: name, version, tools: own, created: new Date() }, { publicKey, privateKey });
    if (!signed.ok) throw new Error(JSON.stringify(signed.problems));
  }
  await host.close();
  return formatKey(publicKey);
}

async function measure({ skills, mode, home, key }) {
  process.env.SKILLHOST_HOME = home;
  const { createHost } = await built("index.js");
  const trust = mode === "off" ? { policy: "off" } : { policy: "require", keys: [key] };
  const {
    wall,
    cpu,
    value: host,
  } = await timed(() => createHost({ skillDirectories: [skills], watch: false, plugins: [], packageSkills: false, trust }));
  const errors = host.diagnostics.filter(({ severity }) => severity === "error");
  if (errors.length > 0 || host.skills.length !== size) throw new Error(JSON.stringify(errors[0] ?? host.skills.length));
  const signed = host.skills.filter((skill) => skill.trust?.status === "signed" && skill.name.startsWith(skillName(0).slice(0, 6))).length;
  await host.close();
  return { wall, cpu, signed };
}

const task = childTask();
if (task === undefined) await compare();
else console.log(JSON.stringify(await measure(task)));
