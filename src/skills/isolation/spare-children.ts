import { type ChildListener, type ChildPlace, ChildRelay, type ChildTransport, type OpenChild } from "./child-transport.ts";

/** Spares of one host. */
const maxSpares = 4;
/** Spares are started when nothing has been loaded for this long, so that they do not compete with what is being loaded. */
const quietMs = 100;

interface Spare {
  readonly relay: ChildRelay;
  readonly child: Promise<ChildTransport>;
  /** Of the generation before. */
  readonly files: ReadonlySet<string>;
}

interface Skill {
  /** Generations that are loaded. */
  generations: number;
  /** How often a child of the skill was started. */
  starts: number;
}

/**
 * Children that are started before they are needed, so that a reload does not wait for a program to start: at most one for each skill folder, and
 * `maxSpares` together, of the skills that were loaded last. A spare has its limits since its start. It is used only if a child that starts now
 * would get the same; otherwise it is ended, and another one starts.
 */
export class SpareChildren {
  readonly #start: OpenChild;
  readonly #areLikely: boolean;
  readonly #skills = new Map<string, Skill>();
  /** By skill folder; the one that was started last is the last. */
  readonly #spares = new Map<string, Spare>();
  readonly #wanted = new Map<string, { readonly place: ChildPlace; readonly files: ReadonlySet<string> }>();
  #timer: NodeJS.Timeout | undefined;

  /** `areLikely`: reloads are expected of all skills. Otherwise only of those that were loaded again before. */
  constructor(start: OpenChild, { areLikely }: { readonly areLikely: boolean }) {
    this.#start = start;
    this.#areLikely = areLikely;
  }

  /** A generation of the skill in this folder begins. */
  enter(folder: string): void {
    const skill = this.#skills.get(folder) ?? { generations: 0, starts: 0 };
    skill.generations++;
    this.#skills.set(folder, skill);
  }

  /** A generation ends; with the last one, the spare of its folder does. */
  async leave(folder: string): Promise<void> {
    const skill = this.#skills.get(folder);
    if (skill === undefined || --skill.generations > 0) return;
    this.#skills.delete(folder);
    this.#wanted.delete(folder);
    await this.#drop(folder);
  }

  /** Takes the spare of the place, or starts a child. */
  open = async (place: ChildPlace, listener: ChildListener): Promise<ChildTransport> => {
    const skill = this.#skills.get(place.folder);
    if (skill !== undefined) skill.starts++;
    return (await this.#take(place, listener)) ?? this.#start(place, listener);
  };

  async #take(place: ChildPlace, listener: ChildListener): Promise<ChildTransport | undefined> {
    const spare = this.#spares.get(place.folder);
    if (spare === undefined) return undefined;
    this.#spares.delete(place.folder);
    let isTaken = false;
    try {
      const child = await spare.child;
      // It does so while this process compares its limits.
      if (spare.relay.end === undefined) child.send(JSON.stringify({ kind: "compile", files: [...spare.files] }));
      isTaken = spare.relay.end === undefined && child.suits(place);
      if (!isTaken) return undefined;
      spare.relay.attach(listener);
      return child;
    } finally {
      // What is wrong with the limits is reported to the caller.
      if (!isTaken) void end(spare);
    }
  }

  /** Asks for a spare of the place, which reads these files ahead. */
  want(place: ChildPlace, files: ReadonlySet<string>): void {
    const skill = this.#skills.get(place.folder);
    if (skill === undefined || (skill.starts < 2 && !this.#areLikely)) return;
    this.#wanted.delete(place.folder);
    this.#wanted.set(place.folder, { place, files });
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#prepare(), quietMs);
    this.#timer.unref();
  }

  #prepare(): void {
    for (const { place, files } of [...this.#wanted.values()].slice(-maxSpares)) {
      void this.#drop(place.folder);
      this.#spares.set(place.folder, this.#begin(place, files));
    }
    this.#wanted.clear();
    for (const folder of [...this.#spares.keys()].slice(0, -maxSpares)) void this.#drop(folder);
  }

  #begin(place: ChildPlace, files: ReadonlySet<string>): Spare {
    const relay = new ChildRelay();
    const child = this.#start(place, relay);
    child.then(
      ({ send }) => send(JSON.stringify({ kind: "prepare", files: [...files] })),
      () => {
        // A skill whose child cannot be started says so when it needs one.
        if (this.#spares.get(place.folder)?.relay === relay) this.#spares.delete(place.folder);
      },
    );
    return { relay, child, files };
  }

  async #drop(folder: string): Promise<void> {
    const spare = this.#spares.get(folder);
    this.#spares.delete(folder);
    if (spare !== undefined) await end(spare);
  }
}

async function end({ child }: Spare): Promise<void> {
  const started = await child.catch(() => undefined);
  await started?.kill();
}
