import { setImmediate } from "node:timers/promises";
import { expect, onTestFinished, test, vi } from "vitest";
import { StatusLine } from "../../src/cli/status-line.ts";
import { patience } from "../slowness.ts";
import { type CliSetup, skillDocument, startCli, toolModule, workplace } from "./run-cli.ts";

const files = { "skills/greeter/SKILL.md": skillDocument("greeter"), "skills/greeter/tools/hello.ts": toolModule("hello", "Hello") };
const hints = "r reload, c call, l list, h help, q quit";

function stage(setup: CliSetup = {}) {
  const place = workplace(files);
  onTestFinished(() => place[Symbol.dispose]());
  const dev = startCli(["dev"], { cwd: place.path, isTTY: true, hasKeys: true, ...setup, env: { NO_COLOR: "1", ...setup.env } });
  /** Presses a key as soon as keys are listened to again. */
  const press = async (key: string): Promise<void> => {
    await vi.waitFor(() => expect(dev.press("x")).toBe(true), { timeout: patience(15_000) });
    await setImmediate();
    dev.press(key);
  };
  return { place, dev, press };
}

test("dev says on a terminal that it loads, then shows the number of errors after each save", async () => {
  const { place, dev } = stage();
  expect(dev.stdout).toBe("");
  await dev.said("Loading skills…");
  await dev.said(`0 errors, 1 skill, 1 tool - ${hints}`);
  place.write("skills/greeter/tools/hello.ts", "export default (\n");
  await dev.said(`1 error, 1 skill, 1 tool - ${hints}`);
  place.write("skills/greeter/tools/hello.ts", toolModule("hello", "Good morning"));
  await dev.said(`0 errors, 1 skill, 1 tool - ${hints}`);
  dev.interrupt();
  const { code, stderr } = await dev.done;
  expect(code).toBe(0);
  // The line is removed before the last words, and not left behind.
  expect(stderr.endsWith("\r\u001b[KStopped.\n")).toBe(true);
});

test.each([
  ["a CI service", { env: { CI: "true" } }],
  ["a terminal that cannot move the cursor", { env: { TERM: "dumb" } }],
  ["a pipe", { isTTY: false }],
])("dev draws nothing and takes no keys in %s", async (_where, setup) => {
  const { dev } = stage(setup);
  await dev.line((line) => line.includes("loaded in"));
  await dev.said("press Ctrl-C to stop.");
  expect(dev.press("q")).toBe(false);
  dev.interrupt();
  expect((await dev.done).stderr).toBe("Watching for changes. Save a file to reload it; press Ctrl-C to stop.\nStopped.\n");
});

test("keys of dev reload, list, help and quit, and others do nothing", async () => {
  const { dev } = stage();
  await dev.said(hints);
  await dev.line((line) => line.includes("loaded in"));
  dev.press("x");
  dev.press("l");
  expect(await dev.line(() => true)).toBe("greeter  active  skills/greeter");
  dev.press("h");
  await dev.said("c  call a tool");
  dev.press("r");
  await dev.said("All files were checked");
  dev.press("q");
  expect((await dev.done).code).toBe(0);
});

test("c asks for a tool and calls the version that was saved last; what fails is reported, and keys work again", async () => {
  const answers = ['hello {"name": "Ada"}', "y", "nothing", "hello {", ""];
  const asked: string[] = [];
  const { place, dev, press } = stage({
    answer: (question) => {
      asked.push(question);
      return answers.shift() ?? "";
    },
  });
  await dev.line((line) => line.includes("loaded in"));
  place.write("skills/greeter/tools/hello.ts", toolModule("hello", "Good day"));
  await dev.line((line) => line.includes("updated hello"));
  await press("c");
  expect(await dev.line(() => true)).toBe("Good day Ada");
  expect(asked[1]).toContain('"hello"');
  await press("c");
  await dev.said('Tool "nothing" does not exist.');
  await press("c");
  await dev.said("is not valid");
  await press("c");
  await dev.said("Nothing was called.");
  await press("\u0004");
  expect((await dev.done).code).toBe(0);
});

test("a status line is cut to the width of the terminal, and waits until a line that was begun is complete", () => {
  let screen = "";
  const line = new StatusLine(
    (text) => {
      screen += text;
    },
    () => 6,
  );
  const write = (text: string): void => {
    line.before();
    screen += text;
    line.after(text);
  };
  line.show("0 errors");
  expect(screen).toBe("0 err");
  write("begun");
  write(" and done\n");
  expect(screen).toBe("0 err\r\u001b[Kbegun and done\n0 err");
  line[Symbol.dispose]();
  expect(screen.endsWith("0 err\r\u001b[K")).toBe(true);
});
