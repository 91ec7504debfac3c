import { describe, expect, test } from "vitest";
import { patience } from "../../slowness.ts";
import { callWhileExchanged } from "./exchange-rounds.ts";

// Other systems do not show the path of an open file, so a short time remains for a replacement.
describe.skipIf(process.platform !== "linux")("while another process replaces a folder by a link to one outside", () => {
  test.each(["copilot", "editor"] as const)(
    "the tools of %s neither show nor change files outside",
    async (presentation) => {
      const { shown, traces, done } = await callWhileExchanged(presentation, 60);
      expect({ shown, traces }).toEqual({ shown: {}, traces: [] });
      expect(done).toBeGreaterThan(20);
    },
    patience(120_000),
  );
});
