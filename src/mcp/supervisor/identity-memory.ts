import { CircuitBreaker, type RespawnPolicy } from "./circuit-breaker.ts";
import type { Clock } from "./clock.ts";
import type { EraVerdict } from "./server-connector.ts";
import type { ServerTrouble } from "./server-state.ts";

/** A verdict and when it was found out, in milliseconds since the epoch. */
export interface DatedVerdict extends EraVerdict {
  readonly foundAt: number;
}

// A server that learns the newer protocol still speaks the old one: only asking again finds that out.
const verdictLife = 7 * 24 * 60 * 60 * 1000;

/** What is known of one server beyond the life of a connection: how often it failed, and what protocol it speaks. */
export class IdentityMemory {
  readonly breaker: CircuitBreaker;
  /** What went wrong last. */
  trouble: ServerTrouble | undefined;
  readonly #clock: Clock;
  #verdict: DatedVerdict | undefined;

  constructor(policy: RespawnPolicy, clock: Clock, random: () => number) {
    this.breaker = new CircuitBreaker(policy, clock, random);
    this.#clock = clock;
  }

  /** While it is worth something. */
  get verdict(): DatedVerdict | undefined {
    const age = this.#clock.now() - (this.#verdict?.foundAt ?? 0);
    // Below zero: the clock was set back, or the file comes from elsewhere.
    return age >= 0 && age < verdictLife ? this.#verdict : undefined;
  }

  learn(verdict: DatedVerdict): void {
    this.#verdict = verdict;
  }

  forgetVerdict(): void {
    this.#verdict = undefined;
  }
}

const maxRemembered = 500;

/** The memory of all servers that were met, the longest unused forgotten first. */
export class IdentityMemories {
  readonly #byId = new Map<string, IdentityMemory>();
  readonly #make: () => IdentityMemory;

  constructor(make: () => IdentityMemory) {
    this.#make = make;
  }

  of(id: string): IdentityMemory {
    const memory = this.#byId.get(id) ?? this.#make();
    this.#byId.delete(id);
    this.#byId.set(id, memory);
    const [oldest] = this.#byId.keys();
    if (this.#byId.size > maxRemembered && oldest !== undefined) this.#byId.delete(oldest);
    return memory;
  }
}
