import { expect, test } from "vitest";
import { orderByRequirements } from "../../src/base/dependency-order.ts";

const item = (name: string, ...requires: string[]) => ({ name, requires: requires.map((required) => ({ name: required })) });

function namesOf(items: readonly ReturnType<typeof item>[]) {
  const { order, cycles } = orderByRequirements(items);
  return { order: order.map((index) => items[index]!.name).join(" "), cycles: [...cycles.values()].map((way) => way.join(">")) };
}

test("puts each after what it requires, and leaves the rest in its order", () => {
  expect(namesOf([item("d", "c", "b"), item("a"), item("b", "a"), item("c", "gone")])).toEqual({ order: "c a b d", cycles: [] });
});

test("finds who requires itself in the end, and not who only requires such a one", () => {
  const { cycles } = namesOf([item("out", "a"), item("a", "b"), item("b", "a"), item("self", "self")]);
  expect(cycles).toEqual(["a>b>a", "a>b>a", "self>self"]);
});

test("takes a chain that is longer than the engine's stack", () => {
  const length = 20_000;
  const items = Array.from({ length }, (_, index) => item(`p${index}`, `p${index + 1}`));
  const { order, cycles } = orderByRequirements(items);
  expect([order[0], order.at(-1), cycles.size]).toEqual([length - 1, 0, 0]);
});
