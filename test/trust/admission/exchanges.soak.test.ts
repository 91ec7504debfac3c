import { describe, expect, test } from "vitest";
import { type AttackOutcome, attackStarts, attackWatcher, type ExchangePoint, exchangePoints, type Partner } from "./exchange-attack.ts";
import { canExchangeAtomically, type ExchangeWay } from "./exchanger.ts";

const points = Object.keys(exchangePoints) as ExchangePoint[];
const ways: readonly ExchangeWay[] = canExchangeAtomically() ? ["atomic", "steps"] : ["steps"];
const partners: readonly Partner[] = ["files", "link"];
const cases = points.flatMap((point) => ways.flatMap((way) => partners.map((partner) => ({ point, way, partner }))));
// Both kinds of hosts go through all cases.
const exchanges = Math.ceil(10_000 / (cases.length * 2));
const outcomes: AttackOutcome[] = [];

function take(outcome: AttackOutcome): AttackOutcome {
  outcomes.push(outcome);
  return outcome;
}

describe("nothing of a stranger is used where signatures are required", () => {
  test.each(cases)("by hosts that start while $point is exchanged ($way, $partner)", async (each) => {
    const { successes } = take(await attackStarts({ ...each, exchanges, pause: 5000 }));
    expect(successes).toEqual([]);
  });

  test.each(cases)("by a host that watches while $point is exchanged ($way, $partner)", async (each) => {
    const { successes } = take(await attackWatcher({ ...each, exchanges, pause: 20_000 }));
    expect(successes).toEqual([]);
  });

  test("in ten thousand exchanges", () => {
    expect(outcomes.reduce((sum, each) => sum + each.exchanges, 0)).toBeGreaterThanOrEqual(10_000);
  });
});
