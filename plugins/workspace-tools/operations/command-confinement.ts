import type { ToolContext } from "skillhost";
import { type CommandFacts, describeCommand } from "./describe-command.ts";
import type { Machine } from "./machine.ts";
import type { Roots } from "./places.ts";

/** What the operating system prevents a program from doing. */
export type Limits = NonNullable<Parameters<Machine["startProcess"]>[0]["limits"]>;

/** A call that runs a command line. Its roots know the rules. */
interface LineCall {
  readonly context: ToolContext;
  readonly roots: Roots;
}

/** Confines command lines to what rules allow, where the operating system can: then rules need not guess from the text. */
export class CommandConfinement {
  readonly #machine: Pick<Machine, "confinement">;
  readonly #isOn: boolean;
  /** A command line runs with the limits that its permission request described, even if files or rules have changed since. */
  readonly #described = new WeakMap<ToolContext, Limits | undefined>();

  constructor(machine: Pick<Machine, "confinement">, isOn: boolean) {
    this.#machine = machine;
    this.#isOn = isOn;
  }

  /** The fields of a permission request for a command line. */
  async describe(line: string, call: LineCall): Promise<CommandFacts & { readonly isConfined?: true }> {
    const limits = await this.#find(line, call.roots);
    this.#described.set(call.context, limits);
    return { ...describeCommand(line), ...(limits !== undefined && { isConfined: true }) };
  }

  /** The limits for the command line of a call. */
  limits(line: string, { context, roots }: LineCall): Promise<Limits | undefined> {
    return this.#described.has(context) ? Promise.resolve(this.#described.get(context)) : this.#find(line, roots);
  }

  /** Whether these limits include all limits that a command line needs. */
  async covers(limits: Limits | undefined, line: string, { roots }: Pick<LineCall, "roots">): Promise<boolean> {
    const wanted = await this.#find(line, roots);
    if (limits === undefined || wanted === undefined) return false;
    const isIn = (paths: readonly string[], all: readonly string[]): boolean => paths.every((path) => all.includes(path));
    return (
      isIn(wanted.unreadable, limits.unreadable) && isIn(wanted.unwritable, limits.unwritable) && (limits.isOffline || !wanted.isOffline)
    );
  }

  async #find(line: string, { limitsOf }: Roots): Promise<Limits | undefined> {
    const limits = this.#isOn ? limitsOf?.(line) : undefined;
    if (limits === undefined || limits === "unenforceable") return undefined;
    return (await this.#machine.confinement()).kind === "enforced" ? limits : undefined;
  }
}
