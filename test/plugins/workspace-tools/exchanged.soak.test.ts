import { expect, test } from "vitest";
import { callWhileExchanged } from "./exchange-rounds.ts";

test.skipIf(process.platform !== "linux")(
  "in thousands of calls while a folder is replaced, nothing outside is shown or changed",
  async () => {
    for (const presentation of ["copilot", "editor"] as const) {
      const { shown, traces, done } = await callWhileExchanged(presentation, 1_500);
      expect({ shown, traces }).toEqual({ shown: {}, traces: [] });
      expect(done).toBeGreaterThan(1_000);
    }
  },
);
