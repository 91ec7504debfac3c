import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import type { FeedReload, FeedSkill } from "../../src/servers/inspector/feed-messages.ts";
import { DiagnosticList } from "../diagnostics/diagnostic-list.tsx";
import { requestHost } from "../feed/host-requests.ts";
import { linkTo } from "../navigation/route.ts";
import { announce, attempt, editorLink, store } from "../page-state.ts";
import { counted, formatBytes, formatDuration, TextValue } from "../parts/values.tsx";

/** A skill: where it comes from, which rule decided its state, what changed in it, and what is wrong with it. */
export function SkillPage({ skill }: { readonly skill: FeedSkill }): JSX.Element {
  const { name, displayName, description, version, folder, state, rule, generation, promptMode, tools, diagnostics, stale } = skill;
  const others = [...store.skills.value.values()].filter((other) => other.name === name && other.folder !== folder);
  return (
    <article>
      <h2>{displayName ?? name}</h2>
      <p>{description}</p>
      <dl class="facts">
        <dt>State</dt>
        <dd>
          {state}
          {stale ? ", its files have an error and the last working version is used" : ""}
          <span class="hint">{rule}</span>
        </dd>
        <dt>Folder</dt>
        <dd>
          <a href={editorLink(folder)}>{folder}</a>
        </dd>
        {version === undefined ? null : (
          <>
            <dt>Version</dt>
            <dd>{version}</dd>
          </>
        )}
        {skill.package === undefined ? null : (
          <>
            <dt>Package</dt>
            <dd>
              {skill.package.name} {skill.package.version}
            </dd>
          </>
        )}
        {skill.trust === undefined ? null : (
          <>
            <dt>Signature</dt>
            <dd>{JSON.stringify(skill.trust)}</dd>
          </>
        )}
        <dt>Generation</dt>
        <dd>
          {generation}
          {skill.oldGenerations?.map((old) => (
            <span key={old.generation} class="badge">
              {counted(old.calls, "call")} on generation {old.generation}
            </span>
          ))}
        </dd>
      </dl>
      {others.length === 0 ? null : (
        <>
          <h3>Other skills with this name</h3>
          <ol>
            {others.map((other) => (
              <li key={other.folder}>
                <a href={linkTo("skills", "skill", other.folder)}>{other.folder}</a>{" "}
                <span class="hint">{`${other.state}: ${other.rule}`}</span>
              </li>
            ))}
          </ol>
        </>
      )}
      <HeldTools skill={skill} />
      {diagnostics.length === 0 ? null : (
        <>
          <h3>Problems</h3>
          <DiagnosticList diagnostics={store.diagnostics.value.filter(({ file }) => file?.startsWith(folder))} fallback={diagnostics} />
        </>
      )}
      <h3>Tools</h3>
      {tools.length === 0 ? <p>None.</p> : <ToolLinks skill={skill} />}
      <h3>Prompts ({promptMode})</h3>
      {skill.prompts.length === 0 ? (
        <p>None.</p>
      ) : (
        skill.prompts.map((prompt) => <PromptText key={prompt.path} folder={folder} prompt={prompt} />)
      )}
      <Generations folder={folder} />
    </article>
  );
}

function ToolLinks({ skill: { name, folder } }: { readonly skill: FeedSkill }): JSX.Element {
  const own = [...store.tools.value.values()].filter(
    ({ kind, source, file }) => kind === "skill" && source === name && (file === undefined || file.startsWith(folder)),
  );
  return (
    <ul>
      {own.map((tool) => (
        <li key={tool.id}>
          <a href={linkTo("skills", "tool", tool.id)}>{tool.definition.name}</a> <span class="hint">{tool.definition.description}</span>
        </li>
      ))}
    </ul>
  );
}

function HeldTools({ skill: { name, held = [] } }: { readonly skill: FeedSkill }): JSX.Element | null {
  if (held.length === 0) return null;
  const approve = (tool: string): void =>
    attempt(requestHost("approve", { skill: name, tool }).then(({ count }) => announce(`${counted(count, "definition")} approved.`)));
  return (
    <>
      <h3>Held back until they are approved</h3>
      {held.map(({ name: tool, reason, diff }) => (
        <div key={tool} class="card">
          <p>
            <strong>{tool}</strong> <span class="hint">{reason}</span>
          </p>
          <TextValue value={diff.join("\n")} label={`Changes of ${tool}`} />
          <button type="button" disabled={store.isReadOnly.value} onClick={() => approve(tool)}>
            Approve {tool}
          </button>
        </div>
      ))}
    </>
  );
}

function PromptText({ folder, prompt }: { readonly folder: string; readonly prompt: FeedSkill["prompts"][number] }): JSX.Element {
  const text = useSignal<string | undefined>(undefined);
  const load = (): void =>
    attempt(
      requestHost("prompt", { folder, path: prompt.path }).then((answer) => {
        text.value = answer.text;
      }),
    );
  return (
    <details onToggle={({ currentTarget }) => (currentTarget.open && text.value === undefined ? load() : undefined)}>
      <summary>
        {prompt.path} <span class="hint">{formatBytes(prompt.size)}</span>
      </summary>
      {text.value === undefined ? <p>Loading…</p> : <TextValue value={text.value} label={prompt.path} />}
    </details>
  );
}

/** The loads that concerned a skill, the newest first. */
function Generations({ folder }: { readonly folder: string }): JSX.Element {
  void store.reloads.version.value;
  const own = store.reloads.entries.flatMap((reload) => changesOf(reload, folder)).reverse();
  return (
    <>
      <h3>Loads</h3>
      {own.length === 0 ? <p>Not loaded again since this page knows the host.</p> : null}
      <ol class="loads" reversed>
        {own.map(({ id, what, files, durationMs }) => (
          <li key={id}>
            {what} <span class="hint">{formatDuration(durationMs)}</span>
            <span class="hint">{files.join(", ")}</span>
          </li>
        ))}
      </ol>
    </>
  );
}

interface ShownLoad {
  readonly id: number;
  readonly what: string;
  readonly files: readonly string[];
  readonly durationMs: number;
}

function changesOf({ id, added, updated, removed, failed, files }: FeedReload, folder: string): readonly ShownLoad[] {
  const own = files.filter((file) => file.startsWith(folder));
  const isOwn = (change: { readonly folder: string }): boolean => change.folder === folder;
  const names = ({
    added: more,
    updated: other,
    removed: gone,
  }: {
    added: readonly string[];
    updated: readonly string[];
    removed: readonly string[];
  }): string => [...more.map((name) => `+${name}`), ...other.map((name) => `~${name}`), ...gone.map((name) => `−${name}`)].join(" ");
  return [
    ...added.filter(isOwn).map((change) => ({ id, what: `Added. ${names(change.tools)}`, files: own, durationMs: change.durationMs })),
    ...updated.filter(isOwn).map((change) => ({ id, what: `Updated. ${names(change.tools)}`, files: own, durationMs: change.durationMs })),
    ...removed.filter(isOwn).map((change) => ({ id, what: "Removed.", files: own, durationMs: change.durationMs })),
    ...failed.filter(isOwn).map((change) => ({
      id,
      what: `Failed: ${change.diagnostics[0]?.message ?? ""}${change.lastGoodServes ? " The last working version is used." : ""}`,
      files: own,
      durationMs: change.durationMs,
    })),
  ];
}
