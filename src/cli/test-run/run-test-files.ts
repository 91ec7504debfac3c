// The process that runs test files: its argument is a TestPlan, and each line of its output a TestMessage.
import { availableParallelism } from "node:os";
import { run } from "node:test";
import { junit, spec } from "node:test/reporters";
import type { TestMessage, TestPlan } from "./run-tests.ts";
import { TestCollection } from "./test-collection.ts";
import { countTests } from "./test-report.ts";

const { files, reporter } = JSON.parse(process.argv[2]!) as TestPlan;
const started = performance.now();
const collected = new TestCollection();
const events = run({ files: [...files], concurrency: Math.max(1, availableParallelism() - 1) });
events.on("test:start", (event) => collected.start(event));
events.on("test:stderr", ({ file, message }) => collected.hear(file, message));
events.on("test:pass", (event) =>
  collected.add(event, event.skip !== undefined ? "skipped" : event.todo !== undefined ? "todo" : "passed"),
);
events.on("test:fail", (event) => collected.add(event, event.todo !== undefined ? "todo" : "failed"));
if (reporter === undefined) for await (const _event of events);
else for await (const piece of events.compose(reporter === "junit" ? junit : new spec())) send({ text: String(piece) });
const { tests } = collected;
send({ run: { files, counts: countTests(tests), durationMs: Math.round(performance.now() - started), tests } });

function send(message: TestMessage): void {
  process.stdout.write(`${JSON.stringify(message)}\n`);
}
