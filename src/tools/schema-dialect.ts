import { isRecord } from "./walk-schema.ts";

export type Dialect = "2020-12" | "2019-09" | "draft-07";

/** The draft that a schema says it is written in; the current one when it says nothing. */
export function dialectOf(schema: unknown): Dialect {
  const named = isRecord(schema) ? schema["$schema"] : undefined;
  if (typeof named !== "string") return "2020-12";
  if (/draft-0[3-7]/.test(named)) return "draft-07";
  return named.includes("2019-09") ? "2019-09" : "2020-12";
}
