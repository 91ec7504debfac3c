import type { AppendLog } from "skillhost";
import { createSessionStore, type FleetSessionStore } from "skillhost/plugins/nats";
import { expect } from "vitest";
import { keepingOwner } from "../../contract/session-store-contract.ts";
import { seed } from "../../rounds.ts";
import { FaultyNetwork } from "./faulty-network.ts";
import { type NatsServer, until } from "./nats-server.ts";

/** Numbers from 0 up to a limit, the same ones for the same seed. */
type Draw = (limit: number) => number;

function drawsOf(seed: number): Draw {
  let state = seed | 0;
  return (limit) => {
    // mulberry32
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * limit) | 0;
  };
}

interface HostPlace {
  readonly network: FaultyNetwork;
  readonly store: FleetSessionStore;
  /** It gets no network any more, as a process that is killed. */
  isDead: boolean;
}

/** The time in which one host owned a session: what it added, in its order. */
interface Tenure {
  readonly host: HostPlace;
  readonly log: AppendLog;
  appended: number;
  acknowledged: number;
  /** How much of it the next owner found. Nothing is added after that. */
  found: number | undefined;
}

const lease = 500;

/**
 * The model of a session: the tenures of its owners one after the other. Of each the stream has a beginning, which is at least what was
 * acknowledged, and does not change once the next owner has begun.
 */
class ModelledSession {
  readonly id: string;
  readonly #tenures: Tenure[] = [];
  readonly #draw: Draw;

  constructor(id: string, draw: Draw) {
    this.id = id;
    this.#draw = draw;
  }

  get current(): Tenure {
    return this.#tenures.at(-1) as Tenure;
  }

  async create(host: HostPlace): Promise<void> {
    this.#begin(host, await host.store.create(this.id));
    // One without records does not exist for others.
    this.append();
    await this.flush();
  }

  append(): void {
    const { current } = this;
    for (let count = 1 + this.#draw(6); count > 0; count--) {
      const text = "x".repeat(this.#draw(2_000));
      current.log.append({ tenure: this.#tenures.length - 1, n: current.appended++, text });
    }
  }

  /** Whether all that was added so far is acknowledged. */
  async flush(): Promise<boolean> {
    const { current } = this;
    const { appended } = current;
    if (!(await succeeds(current.log.flush()))) return false;
    current.acknowledged = Math.max(current.acknowledged, appended);
    return true;
  }

  /** Has another host own it, after the one before has closed it, or is dead. One that lives may be cut off: else its session stays. True: it moved. */
  async move(to: () => HostPlace, closes: boolean): Promise<boolean> {
    const { current } = this;
    const { appended } = current;
    if (closes && !current.host.isDead && (await succeeds(current.log.close()))) current.acknowledged = appended;
    const isFree = closes || current.host.isDead;
    let opened: { readonly host: HostPlace; readonly log: AppendLog } | undefined;
    const open = async (): Promise<boolean> => {
      const host = to();
      try {
        opened = { host, log: await host.store.open(this.id) };
      } catch (error) {
        expect(["SESSION_IN_USE", "SESSION_STORE"], String(error)).toContain((error as { readonly code?: string }).code);
      }
      return opened !== undefined;
    };
    if (isFree) await until(open, `an owner of ${this.id}`);
    else await open();
    if (opened === undefined) return false;
    const { host, log } = opened;
    this.check((await log.read()).records);
    this.#begin(host, log);
    return true;
  }

  /** Compares what is stored with the model, and remembers what cannot change any more. */
  check(records: readonly object[]): void {
    const stored = records as readonly { readonly tenure: number; readonly n: number }[];
    let at = 0;
    this.#tenures.forEach((tenure, index) => {
      let n = 0;
      while (stored[at]?.tenure === index && stored[at]?.n === n) [at, n] = [at + 1, n + 1];
      const where = `${this.id}, owner ${index + 1} of ${this.#tenures.length}`;
      expect(n, `${where}: acknowledged records are there`).toBeGreaterThanOrEqual(tenure.acknowledged);
      expect(n, `${where}: nothing that was not added`).toBeLessThanOrEqual(tenure.appended);
      if (tenure.found !== undefined) expect(n, `${where}: nothing changes after the next owner began`).toBe(tenure.found);
      tenure.found = n;
    });
    expect(stored.length - at, `${this.id}: nothing is doubled or out of order, from ${JSON.stringify(stored[at])} on`).toBe(0);
  }

  #begin(host: HostPlace, log: AppendLog): void {
    this.#tenures.push({ host, log, appended: 0, acknowledged: 0, found: undefined });
  }
}

export interface ModelRun {
  /** Which of the runs with one seed. */
  readonly run: number;
  readonly sessions: number;
  /** Steps of each session. */
  readonly steps: number;
  /** What goes wrong meanwhile. */
  readonly faults: number;
}

/**
 * Sessions that several hosts keep in the same stream, each through a network of its own, while networks, hosts and the server fail at random. At the
 * end everything works again, and each session is compared with its model.
 */
export async function runSessionModel(server: NatsServer, { run, sessions, steps, faults }: ModelRun): Promise<{ readonly moves: number }> {
  const first = seed + run * 1_000;
  const draw = drawsOf(first);
  const port = Number(server.address.split(":")[1]);
  const places: HostPlace[] = [];
  const hosts: HostPlace[] = [];
  let moves = 0;
  const addHost = async (): Promise<HostPlace> => {
    const network = await FaultyNetwork.start(port);
    const store = createSessionStore({ servers: network.address, lease });
    store.attach(keepingOwner());
    const place = { network, store, isDead: false };
    places.push(place);
    return place;
  };
  for (let count = 0; count < 3; count++) hosts.push(await addHost());
  const all = Array.from({ length: sessions }, (_, at) => new ModelledSession(`run-${run}-${at}`, drawsOf(first + at + 1)));
  const any = <T>(list: readonly T[]): T => list[draw(list.length)] as T;
  await Promise.all(all.map((session) => session.create(any(hosts))));
  let running = sessions;
  const live = async (session: ModelledSession): Promise<void> => {
    for (let step = 0; step < steps; step++) {
      session.append();
      const kind = draw(10);
      if (kind < 5) await session.flush();
      if (kind > 7 || session.current.host.isDead) {
        if (await session.move(() => any(hosts), kind === 9)) moves++;
      }
      await pause(draw(20));
    }
    running--;
  };
  const fail = async (): Promise<void> => {
    for (let fault = 0; fault < faults && running > 0; fault++) {
      await pause(20 + draw(60));
      const at = draw(hosts.length);
      const { network } = hosts[at] as HostPlace;
      switch (draw(5)) {
        case 0:
          network.cut();
          break;
        case 1:
          network.mute();
          await pause(draw(40));
          network.cut();
          break;
        case 2:
          network.down();
          await pause(draw(lease * 2));
          network.up();
          break;
        case 3:
          (hosts[at] as HostPlace).isDead = true;
          network.down();
          hosts[at] = await addHost();
          break;
        default:
          await server.kill();
          await server.start();
      }
    }
  };
  try {
    await Promise.all([...all.map(live), fail()]);
    for (const { network } of hosts) network.up();
    for (const session of all) {
      if (session.current.host.isDead) await session.move(() => any(hosts), false);
      await until(() => session.flush(), `the last records of ${session.id}`);
    }
    const reader = await addHost();
    for (const session of all) session.check((await reader.store.read(session.id)).records);
    // Former owners come back, and what they still have is refused.
    for (const { network } of places) network.up();
    await Promise.all(places.map(({ store }) => store[Symbol.asyncDispose]()));
    const last = await addHost();
    for (const session of all) session.check((await last.store.read(session.id)).records);
  } finally {
    for (const { network } of places) network.up();
    await Promise.all(places.map(({ store }) => store[Symbol.asyncDispose]()));
    await Promise.all(places.map(({ network }) => network[Symbol.asyncDispose]()));
  }
  return { moves };
}

/** What fails keeps its records, and may be tried again. */
function succeeds(work: Promise<void>): Promise<boolean> {
  return work.then(
    () => true,
    () => false,
  );
}

function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
