import { mkdir, readFile } from "node:fs/promises";
import { dirname } from "node:path";
import { writeFileAtomic } from "../io/atomic-write.ts";
import type { SessionEvents } from "./history/events.ts";

/** Where a session keeps the plan that it works on. */
export interface PlanStorage {
  /** Undefined: there is none. */
  read(): Promise<string | undefined>;
  /** True: there was none before. */
  write(content: string): Promise<boolean>;
}

export const planFileName = "plan.md";

/** A plan. Writing it emits an event. */
export function createPlan(
  { read, write }: PlanStorage,
  events: SessionEvents,
): Pick<PlanStorage, "read"> & { write(content: string): Promise<void> } {
  return {
    read,
    async write(content) {
      const isNew = await write(content);
      events.append("session.plan_changed", { operation: isNew ? "create" : "update" });
    },
  };
}

/** A plan in a file of this machine. */
export function planInFile(path: () => string): PlanStorage {
  const read = async (): Promise<string | undefined> => {
    try {
      return await readFile(path(), "utf8");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw error;
    }
  };
  return {
    read,
    async write(content) {
      const isNew = (await read()) === undefined;
      await mkdir(dirname(path()), { recursive: true, mode: 0o700 });
      await writeFileAtomic(path(), content);
      return isNew;
    },
  };
}
