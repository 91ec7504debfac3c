import type { PermissionRequest, ToolContext, ToolLike } from "skillhost";
import { outsideText, unreadableText } from "./fault-texts.ts";
import { type Located, locate, type Place, type Roots } from "./operations/places.ts";
import type { SearchBounds } from "./operations/search-tree.ts";
import type { SearchSteps } from "./operations/walk-files.ts";

/** One call of a tool. */
export interface Call {
  readonly context: ToolContext;
  readonly sessionId: string;
  readonly workingDirectory: string;
  readonly roots: Roots;
}

/** Why a call is refused, as text for the model. */
export interface Refusal {
  readonly refusal: string;
}

/** What a call would do, and the places (with links resolved) that the permission covers. */
export interface Described {
  readonly request: PermissionRequest;
  readonly places?: readonly Place[];
}

/** A tool with two steps, describe and run. Both look up the files, since they may change while the user decides. */
export interface WorkspaceTool<Args> extends Omit<ToolLike, "handler" | "permission"> {
  /** Absent: calls need no permission. */
  describe?(args: Args, call: Call): Promise<Described | Refusal> | Described | Refusal;
  run(args: Args, call: Call): Promise<unknown>;
}

/** Results of the first steps, for the second ones. */
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
              // A call that will be refused needs no permission.
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

/** The place of a path, or why the call may not use it. */
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

/** The limits of a call's search. */
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
