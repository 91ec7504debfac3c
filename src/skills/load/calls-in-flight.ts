import { isThenable } from "../../base/wait.ts";
import type { Prompt } from "../../tools/prompt.ts";
import type { Resource, ResourceTemplate } from "../../tools/resource.ts";
import type { ResourceSet } from "../../tools/tool-source.ts";
import type { LoadedTools } from "./tool-runner.ts";

/** Counts the running calls of one generation of code, which must not end before them. */
export interface CallsInFlight {
  /** Runs `execute` and counts it until its result has settled. Throws and rejects as it does. */
  track<A extends readonly unknown[]>(execute: (...args: A) => unknown): (...args: A) => unknown;
  /** Counts a pending call until the hold is disposed of. */
  hold(): Disposable;
  /** Settles when no call is running or pending. */
  ended(): Promise<void>;
}

export function countCalls(): CallsInFlight {
  let running = 0;
  let waiting: (() => void)[] = [];
  const leave = (): void => {
    running--;
    if (running > 0) return;
    for (const wake of waiting) wake();
    waiting = [];
  };
  return {
    track:
      (execute) =>
      (...args) => {
        running++;
        let outcome: unknown;
        try {
          outcome = execute(...args);
        } catch (error) {
          leave();
          throw error;
        }
        if (!isThenable(outcome)) {
          leave();
          return outcome;
        }
        return Promise.resolve(outcome).finally(leave);
      },
    hold: () => {
      running++;
      let isHeld = true;
      return {
        [Symbol.dispose]: () => {
          if (isHeld) leave();
          isHeld = false;
        },
      };
    },
    ended: () => (running === 0 ? Promise.resolve() : new Promise((resolve) => waiting.push(resolve))),
  };
}

interface CountedOffers {
  readonly prompts: readonly Prompt[];
  readonly resources: readonly Resource[];
  readonly resourceTemplates: readonly ResourceTemplate[];
  readonly resourceLists: readonly ResourceSet[];
}

/** Wraps the prompts and resources of a file so that their use counts as calls, which delay the end of its generation. */
export function countOffers(
  { prompts, resources, resourceTemplates, resourceLists }: Partial<LoadedTools>,
  calls: CallsInFlight,
): CountedOffers {
  return {
    prompts: prompts?.map((prompt) => countPrompt(prompt, calls)) ?? [],
    resources: resources?.map((resource) => countReads(resource, calls)) ?? [],
    resourceTemplates:
      resourceTemplates?.map((template) => {
        const { read, complete } = template;
        return Object.freeze({ ...template, read: track(read, calls), ...(complete && { complete: track(complete, calls) }) });
      }) ?? [],
    resourceLists: resourceLists?.map((list) => countList(list, calls)) ?? [],
  };
}

function countPrompt(prompt: Prompt, calls: CallsInFlight): Prompt {
  const { definition, origin, get, complete } = prompt;
  return Object.freeze({
    definition,
    origin,
    // Computed on first read.
    get revision() {
      return prompt.revision;
    },
    get: track(get, calls),
    ...(complete && { complete: track(complete, calls) }),
  });
}

function countReads(source: Resource, calls: CallsInFlight): Resource {
  return Object.freeze({ ...source, read: track(source.read, calls) });
}

/** A resource that stays listed keeps its object. */
function countList(list: ResourceSet, calls: CallsInFlight): ResourceSet {
  let of: readonly Resource[] | undefined;
  let counted = new Map<Resource, Resource>();
  let resources: readonly Resource[] = [];
  return Object.freeze({
    get resources() {
      if (list.resources === of) return resources;
      of = list.resources;
      counted = new Map(of.map((resource) => [resource, counted.get(resource) ?? countReads(resource, calls)]));
      resources = Object.freeze([...counted.values()]);
      return resources;
    },
  });
}

function track<A extends readonly unknown[], R>(run: (...args: A) => R, calls: CallsInFlight): (...args: A) => R {
  return calls.track(run) as (...args: A) => R;
}
