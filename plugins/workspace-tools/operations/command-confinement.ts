import type { ToolContext } from "skillhost";
import { type CommandFacts, describeCommand } from "./describe-command.ts";
import type { Machine } from "./machine.ts";
import type { Roots } from "./places.ts";

/** What the operating system keeps a program from. */
export type Limits = NonNullable<Parameters<Machine["startProcess"]>[0]["limits"]>;

/** A call that runs a line: what rules say of it is known by its roots. */
interface LineCall {
  readonly context: ToolContext;
  readonly roots: Roots;
}

/** Keeps the lines of calls to what rules allow, where the machine can do that: then the rules need not guess. */
export class CommandConfinement {
  readonly #machine: Pick<Machine, "confinement">;
  readonly #isOn: boolean;
  /** What a call was described with is what its line runs with, whatever has become of files and rules meanwhile. */
  readonly #described = new WeakMap<ToolContext, Limits | undefined>();

  constructor(machine: Pick<Machine, "confinement">, isOn: boolean) {
    this.#machine = machine;
    this.#isOn = isOn;
  }

  /** The fields of a permission request for a line. */
  async describe(line: string, call: LineCall): Promise<CommandFacts & { readonly isConfined?: true }> {
    const limits = await this.#find(line, call.roots);
    this.#described.set(call.context, limits);
    return { ...describeCommand(line), ...(limits !== undefined && { isConfined: true }) };
  }

  /** The limits that the line of a call runs with. */
  limits(line: string, { context, roots }: LineCall): Promise<Limits | undefined> {
    return this.#described.has(context) ? Promise.resolve(this.#described.get(context)) : this.#find(line, roots);
  }

  /** Whether a program that runs with these limits is kept from all that a line must be kept from. */
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
