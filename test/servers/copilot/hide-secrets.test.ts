import { expect, test } from "vitest";
import { createLogger } from "../../../src/base/logger.ts";
import { hideSecrets } from "../../../src/cli/commands/headless.ts";

test("texts that a client wants in no log are in none, wherever they stand", () => {
  const lines: string[] = [];
  const secrets = new Set<string>();
  const log = hideSecrets(createLogger({ level: "info", write: (line) => lines.push(line) }), secrets);
  log.info("The word is plover.");
  secrets.add("plover");
  const circular: Record<string, unknown> = { word: "plover" };
  circular["self"] = circular;
  log.error("The word is plover.", { error: new Error("plover failed"), deep: [{ plover: 1 }] });
  log.warning("Circular.", circular);
  log.debug("plover");
  expect(lines).toHaveLength(3);
  expect(lines[0]).toContain("plover");
  expect(lines.slice(1).join("")).not.toContain("plover");
  expect(lines[1]).toContain("[secret] failed");
  expect([log.enabled("info"), log.enabled("debug")]).toEqual([true, false]);
});
