import { describe, expect, test } from "vitest";
import { patience } from "../../slowness.ts";
import { callWhileExchanged } from "./exchange-rounds.ts";

// Elsewhere the system does not tell where an open file is, so that a short time remains for an exchange.
describe.skipIf(process.platform !== "linux")("while another process exchanges a folder for a link to one outside", () => {
  test.each(["copilot", "editor"] as const)(
    "the tools of %s neither show nor change what is outside",
    async (presentation) => {
      const { shown, traces, done } = await callWhileExchanged(presentation, 60);
      expect({ shown, traces }).toEqual({ shown: {}, traces: [] });
      expect(done).toBeGreaterThan(20);
    },
    patience(120_000),
  );
});
