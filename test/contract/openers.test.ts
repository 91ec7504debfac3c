import { Lifetime } from "../../src/base/lifetime.ts";
import { ResourceWatches } from "../../src/mcp/connection/resource-watches.ts";
import { closesWhileOpening } from "./closes-while-opening.ts";

/** Something slow to open, and how many of it are open. */
function slowThing(): { open(): Promise<AsyncDisposable>; countOpen(): number } {
  let count = 0;
  const open = async (): Promise<AsyncDisposable> => {
    await new Promise(setImmediate);
    count++;
    return {
      [Symbol.asyncDispose]: async () => {
        await undefined;
        count--;
      },
    };
  };
  return { open, countOpen: () => count };
}

closesWhileOpening("a lifetime", () => {
  const { open, countOpen } = slowThing();
  const life = new Lifetime(() => new Error("closed"));
  const held: AsyncDisposable[] = [];
  const end = async (thing: AsyncDisposable): Promise<void> => thing[Symbol.asyncDispose]();
  return {
    open: async () => held.push(await life.open(open, end)),
    close: async () => {
      await life.end();
      await Promise.all(held.map(end));
    },
    countOpen,
  };
});

closesWhileOpening("the subscriptions to resources of one MCP connection", () => {
  const { open, countOpen } = slowThing();
  const watches = new ResourceWatches(open);
  const held: AsyncDisposable[] = [];
  return {
    open: async () => held.push(await watches.add("note://one", () => {})),
    close: async () => {
      await Promise.all(held.map((watch) => watch[Symbol.asyncDispose]()));
      await watches.close();
    },
    countOpen,
  };
});
