import type { HostTool } from "../../host/explain.ts";
import type { Host, SkillInfo } from "../../host/host.ts";
import type { Session } from "../../session/session.ts";
import type { BlobStore } from "./blob-store.ts";
import { toFeedDefinition, toFeedJson } from "./feed-json.ts";
import type { FeedSkill, FeedTool } from "./feed-messages.ts";
import type { MessageLog } from "./message-log.ts";

/** A call that runs, with the skill and the generation that it began with. */
interface RunningCall {
  readonly folder: string;
  readonly generation: number;
}

interface Known<Source, Shown> {
  readonly source: Source;
  readonly shown: Shown;
}

/** The skills and tools of a host, and what changes in them. */
export class WatchedCatalog {
  readonly #host: Host;
  readonly #log: MessageLog;
  readonly #blobs: BlobStore;
  readonly #calls = new Map<string, RunningCall>();
  #skills: ReadonlyMap<string, Known<SkillInfo, FeedSkill>> = new Map();
  #tools: ReadonlyMap<string, Known<HostTool, FeedTool>> = new Map();

  constructor(host: Host, log: MessageLog, blobs: BlobStore) {
    this.#host = host;
    this.#log = log;
    this.#blobs = blobs;
    this.refresh();
  }

  get skills(): readonly FeedSkill[] {
    return Array.from(this.#skills.values(), ({ shown }) => shown);
  }

  get tools(): readonly FeedTool[] {
    return Array.from(this.#tools.values(), ({ shown }) => shown);
  }

  /** The definition of a tool of now, by its id or by the name that refers to it. */
  find(idOrName: string): HostTool | undefined {
    const known = this.#tools.get(idOrName) ?? [...this.#tools.values()].find(({ source }) => isNamed(source, idOrName));
    return known?.source;
  }

  /** Reads the host again, and announces what differs. */
  refresh(): void {
    const skills = this.#readSkills();
    const tools = this.#readTools();
    const changedSkills = changed(this.#skills, skills);
    const changedTools = changed(this.#tools, tools);
    const removedSkills = [...this.#skills.keys()].filter((key) => !skills.has(key));
    const removedTools = [...this.#tools.keys()].filter((key) => !tools.has(key));
    this.#skills = skills;
    this.#tools = tools;
    if (changedSkills.length + changedTools.length + removedSkills.length + removedTools.length === 0) return;
    this.#log.append("catalog", () => ({ skills: changedSkills, tools: changedTools, removedSkills, removedTools }));
  }

  callStarted(toolCallId: string, toolName: string, session: Session): void {
    const origin = session.isOpen ? session.catalog.executables.get(toolName)?.origin : undefined;
    if (origin?.kind !== "skill") return;
    const skill = [...this.#skills.values()].find(({ source }) => source.name === origin.source && source.state === "active")?.source;
    if (skill !== undefined) this.#calls.set(toolCallId, { folder: skill.folder, generation: skill.generation });
  }

  callEnded(toolCallId: string): void {
    const call = this.#calls.get(toolCallId);
    this.#calls.delete(toolCallId);
    if (call !== undefined && this.#skills.get(call.folder)?.shown.generation !== call.generation) this.refresh();
  }

  #readSkills(): ReadonlyMap<string, Known<SkillInfo, FeedSkill>> {
    return new Map(
      this.#host.skills.map((source) => {
        const known = this.#skills.get(source.folder);
        const old = this.#oldGenerations(source);
        const isSame =
          known !== undefined && isEqual(known.source, source) && JSON.stringify(known.shown.oldGenerations) === JSON.stringify(old);
        return [source.folder, isSame ? known : { source, shown: this.#showSkill(source, old) }];
      }),
    );
  }

  #readTools(): ReadonlyMap<string, Known<HostTool, FeedTool>> {
    const tools = new Map<string, Known<HostTool, FeedTool>>();
    for (const source of this.#host.tools) {
      const { kind, source: from, file = "", name, nativeName = name } = source;
      let id = `${kind}/${from}/${nativeName}`;
      // Two sources may have one name, and one source two tools with one name.
      if (tools.has(id)) id = `${id} ${file}`;
      for (let copy = 2; tools.has(id); copy++) id = `${kind}/${from}/${nativeName} ${file} ${copy}`;
      const known = this.#tools.get(id);
      tools.set(id, known !== undefined && isEqual(known.source, source) ? known : { source, shown: this.#showTool(id, source) });
    }
    return tools;
  }

  #showSkill({ prompts, ...source }: SkillInfo, oldGenerations: FeedSkill["oldGenerations"]): FeedSkill {
    const described = toFeedJson(source, this.#blobs) as Omit<SkillInfo, "prompts">;
    return {
      ...described,
      prompts: prompts.map(({ path, text }) => ({ path, size: Buffer.byteLength(text) })),
      ...(oldGenerations !== undefined && { oldGenerations }),
    };
  }

  #showTool(id: string, { definition, name: _, ...tool }: HostTool): FeedTool {
    return {
      id,
      ...tool,
      definition: toFeedDefinition(definition, this.#blobs),
      isReadOnly: definition.annotations?.readOnlyHint === true,
    };
  }

  #oldGenerations({ folder, generation }: SkillInfo): FeedSkill["oldGenerations"] {
    const counts = new Map<number, number>();
    for (const call of this.#calls.values()) {
      if (call.folder === folder && call.generation < generation) counts.set(call.generation, (counts.get(call.generation) ?? 0) + 1);
    }
    return counts.size === 0 ? undefined : Array.from(counts, ([old, calls]) => ({ generation: old, calls }));
  }
}

function isNamed({ state, name, renamedTo, kind, source, nativeName }: HostTool, wanted: string): boolean {
  if (state === "wins") return name === wanted || (kind === "mcp" && `${source}/${nativeName}` === wanted);
  return state === "renamed" && renamedTo === wanted;
}

function changed<Source, Shown>(
  before: ReadonlyMap<string, Known<Source, Shown>>,
  now: ReadonlyMap<string, Known<Source, Shown>>,
): readonly Shown[] {
  return [...now].filter(([key, known]) => before.get(key) !== known).map(([, { shown }]) => shown);
}

/** Whether two descriptions are equal. Most of their members are the same objects while nothing has changed. */
function isEqual<T extends object>(one: T, other: T): boolean {
  const keys = Object.keys(one) as (keyof T)[];
  if (keys.length !== Object.keys(other).length) return false;
  return keys.every((key) => Object.is(one[key], other[key]) || JSON.stringify(one[key]) === JSON.stringify(other[key]));
}
