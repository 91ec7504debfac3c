import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import type { FeedSkill, FeedTool } from "../../src/servers/inspector/feed-messages.ts";
import { linkTo, route } from "../navigation/route.ts";
import { store } from "../page-state.ts";
import { VirtualList } from "../parts/virtual-list.tsx";
import { SkillPage } from "./skill-page.tsx";
import { ToolPage } from "./tool-page.tsx";

interface SkillRow {
  readonly key: string;
  readonly skill?: FeedSkill;
  readonly tool?: FeedTool;
  /** The heading of tools that are not of a skill. */
  readonly heading?: string;
}

/** Skills with their tools, then the tools of other sources, as a list that stays fast with thousands. */
export function SkillsView(): JSX.Element {
  const filter = useSignal("");
  const rows = listRows(filter.value.toLowerCase());
  const { parts } = route.value;
  const [kind, id = ""] = parts;
  const skill = kind === "skill" ? store.skills.value.get(id) : undefined;
  const tool = kind === "tool" ? store.tools.value.get(id) : undefined;
  return (
    <div class="columns">
      <section class="list" aria-label="Skills and tools">
        <label class="filter">
          <span>Filter</span>
          <input type="search" value={filter.value} onInput={({ currentTarget }) => (filter.value = currentTarget.value)} />
        </label>
        <VirtualList
          label="Skills and tools"
          items={rows}
          rowHeight={30}
          keyOf={({ key }) => key}
          row={(row) => <Row row={row} selected={id} />}
        />
      </section>
      <section class="detail" aria-label="Details">
        {skill === undefined ? null : <SkillPage key={skill.folder} skill={skill} />}
        {tool === undefined ? null : <ToolPage key={tool.id} tool={tool} />}
        {skill === undefined && tool === undefined ? <Empty isGone={id !== ""} count={store.skills.value.size} /> : null}
      </section>
    </div>
  );
}

function Empty({ isGone, count }: { readonly isGone: boolean; readonly count: number }): JSX.Element {
  if (isGone) return <p>This does not exist any more.</p>;
  return (
    <p>
      {count === 0 ? 'No skills yet. Create one with "skillhost new skill <name>"; it appears here at once.' : "Choose a skill or a tool."}
    </p>
  );
}

function Row({ row: { skill, tool, heading }, selected }: { readonly row: SkillRow; readonly selected: string }): JSX.Element {
  if (skill !== undefined) {
    return (
      <a class="row skill" href={linkTo("skills", "skill", skill.folder)} aria-current={skill.folder === selected ? "true" : undefined}>
        <strong>{skill.displayName ?? skill.name}</strong>
        {skill.version === undefined ? null : <span class="hint">{skill.version}</span>}
        {skill.state === "active" ? null : <span class="badge bad">{skill.state}</span>}
        {skill.stale ? <span class="badge bad">last good version</span> : null}
        {skill.oldGenerations === undefined ? null : <span class="badge">old calls</span>}
      </a>
    );
  }
  if (tool === undefined) return <span class="row heading">{heading}</span>;
  return (
    <a class="row tool" href={linkTo("skills", "tool", tool.id)} aria-current={tool.id === selected ? "true" : undefined}>
      {tool.definition.name}
      {tool.state === "wins" ? null : <span class="badge">{tool.state}</span>}
    </a>
  );
}

function listRows(filter: string): readonly SkillRow[] {
  const fits = (...texts: readonly (string | undefined)[]): boolean =>
    filter === "" || texts.some((text) => text?.toLowerCase().includes(filter));
  const tools = [...store.tools.value.values()];
  const bySource = new Map<string, FeedTool[]>();
  for (const tool of tools) {
    const key = tool.kind === "skill" ? `skill ${tool.source}` : `${tool.kind} ${tool.source}`;
    const list = bySource.get(key);
    if (list === undefined) bySource.set(key, [tool]);
    else list.push(tool);
  }
  const rows: SkillRow[] = [];
  for (const skill of store.skills.value.values()) {
    const own = (bySource.get(`skill ${skill.name}`) ?? []).filter(({ file }) => file === undefined || file.startsWith(skill.folder));
    const isWhole = fits(skill.name, skill.displayName, skill.description);
    const shown = isWhole ? own : own.filter((tool) => fits(tool.definition.name, tool.definition.description));
    if (!isWhole && shown.length === 0) continue;
    rows.push({ key: `skill ${skill.folder}`, skill }, ...shown.map((tool) => ({ key: `tool ${tool.id}`, tool })));
  }
  for (const [key, own] of bySource) {
    if (key.startsWith("skill ")) continue;
    const shown = own.filter((tool) => fits(key, tool.definition.name, tool.definition.description));
    if (shown.length > 0) rows.push({ key, heading: key }, ...shown.map((tool) => ({ key: `tool ${tool.id}`, tool })));
  }
  return rows;
}
