import type { ToolContext } from "./tool.ts";

type Meta = Readonly<Record<string, unknown>>;

const metaOfCalls = new WeakMap<ToolContext, Meta>();

/** Says what a call of a remote tool takes along, such as what a hook added and where the call stands in a trace. */
export function setCallMeta(context: ToolContext, meta: Meta): void {
  metaOfCalls.set(context, meta);
}

/** What was set for this call; undefined: nothing. */
export function callMetaOf(context: ToolContext): Meta | undefined {
  return metaOfCalls.get(context);
}
