import { expect, test } from "vitest";
import { Lifetime } from "../../src/base/lifetime.ts";

const createLifetime = (): Lifetime => new Lifetime(() => new Error("The owner is closed."));

test("hands out what arrives while the owner is open, and leaves closing it to the owner", async () => {
  const life = createLifetime();
  const closed: string[] = [];
  expect(
    await life.open(
      async () => "door",
      (late) => closed.push(late),
    ),
  ).toBe("door");
  await life.end();
  expect(closed).toEqual([]);
});

test("closes what arrives after the end, and waits for that", async () => {
  const life = createLifetime();
  let arrive = (_thing: string): void => {};
  const closed: string[] = [];
  const close = async (late: string): Promise<void> => {
    await new Promise(setImmediate);
    closed.push(late);
  };
  const opening = life.open(() => new Promise<string>((resolve) => (arrive = resolve)), close);
  const failing = expect(opening).rejects.toThrow("The owner is closed.");
  const ended = life.end().then(() => closed.slice());
  arrive("door");
  expect(await ended).toEqual(["door"]);
  await failing;
});

test("aborts a pending open when the owner closes", async () => {
  const life = createLifetime();
  const opening = life.open(
    (signal) => new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
    () => {},
  );
  const failing = expect(opening).rejects.toThrow("The owner is closed.");
  await Promise.all([life.end(), life.end(), failing]);
  expect(life.isOver).toBe(true);
});

test("a lifetime opens nothing after its end", async () => {
  const life = createLifetime();
  await life.end();
  let opened = 0;
  await expect(
    life.open(
      () => opened++,
      () => {},
    ),
  ).rejects.toThrow("The owner is closed.");
  expect(() => life.assertOpen()).toThrow("The owner is closed.");
  expect(opened).toBe(0);
});

test("passes on why something could not be opened, and names why a late one could not be closed", async () => {
  const life = createLifetime();
  await expect(
    life.open(
      () => Promise.reject(new Error("locked")),
      () => {},
    ),
  ).rejects.toThrow("locked");
  const late = life.open(
    () => new Promise((resolve) => setImmediate(resolve)),
    () => Promise.reject(new Error("stuck")),
  );
  const failing = expect(late).rejects.toMatchObject({ message: "The owner is closed.", cause: { message: "stuck" } });
  await life.end();
  await failing;
});
