import type { PermissionRequest, ToolContext, ToolLike } from "skillhost";
import { outsideText, unreadableText } from "./fault-texts.ts";
import { type Located, locate, type Place, type Roots } from "./operations/places.ts";
import type { SearchBounds } from "./operations/search-tree.ts";
import type { SearchSteps } from "./operations/walk-files.ts";

/** One call, as the tools see it. */
export interface Call {
  readonly context: ToolContext;
  readonly sessionId: string;
  readonly workingDirectory: string;
  readonly roots: Roots;
}

/** What keeps a call from being made at all, as the model reads it. */
export interface Refusal {
  readonly refusal: string;
}

/** What a call would do, and what it would do it to: these places, links followed, are what is permitted. */
export interface Described {
  readonly request: PermissionRequest;
  readonly places?: readonly Place[];
}

/** A tool by its two steps. What it runs on is looked up in both: files change while somebody is asked. */
export interface WorkspaceTool<Args> extends Omit<ToolLike, "handler" | "permission"> {
  /** Absent: its calls need no permission. */
  describe?(args: Args, call: Call): Promise<Described | Refusal> | Described | Refusal;
  run(args: Args, call: Call): Promise<unknown>;
}

/** What the first step of a call came to; the second one goes by it. */
const firstSteps = new WeakMap<ToolContext, Refusal | { readonly places: ReadonlySet<string> }>();

export function toToolLike<Args>(tool: WorkspaceTool<Args>, rootsOf: (context: ToolContext) => Roots): ToolLike {
  const { describe, run, ...definition } = tool;
  const callOf = (context: ToolContext): Call => {
    const { sessionId, workingDirectory } = context.invocation;
    return { context, sessionId, workingDirectory, roots: rootsOf(context) };
  };
  return {
    ...definition,
    ...(describe === undefined
      ? { skipPermission: true }
      : {
          async permission(args: Args, context: ToolContext): Promise<PermissionRequest | null> {
            const described = await describe(args, callOf(context));
            if ("refusal" in described) {
              firstSteps.set(context, described);
              // Nobody need be asked for what is not going to happen.
              return null;
            }
            firstSteps.set(context, { places: new Set(described.places?.map(({ real }) => real)) });
            return described.request;
          },
        }),
    handler(args: Args, _invocation: unknown, context: ToolContext): unknown {
      const step = firstSteps.get(context);
      return step !== undefined && "refusal" in step ? failure(step.refusal) : run(args, callOf(context));
    },
  } as ToolLike;
}

/** Where a path leads, or why the call cannot have it. */
export async function placeFor(
  path: string,
  { context, roots }: Call,
  access: "read" | "write",
): Promise<{ readonly place: Place } | Refusal> {
  const located = await locate(path, roots, access);
  if (!located.ok) return { refusal: refusalOf(located, path, roots, access) };
  const step = firstSteps.get(context);
  const isOther = step !== undefined && "places" in step && !step.places.has(located.place.real);
  return isOther ? { refusal: unreadableText(path) } : { place: located.place };
}

/** How a call may search: until these steps are spent. */
export function boundsOf({ context, roots }: Call, steps: SearchSteps): SearchBounds {
  return { signal: context.invocation.signal, steps, isKeptBack: roots.isKeptBack };
}

function refusalOf({ reason }: Extract<Located, { ok: false }>, path: string, roots: Roots, access: "read" | "write"): string {
  return reason === "unreadable"
    ? unreadableText(path)
    : outsideText(path, access === "read" ? [...roots.writable, ...roots.readable] : roots.writable);
}

export function failure(text: string): object {
  return { resultType: "failure", textResultForLlm: text, error: text };
}
