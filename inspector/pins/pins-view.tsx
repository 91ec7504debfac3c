import type { JSX } from "preact";
import type { Json } from "../../src/base/json.ts";
import type { FeedPin, FeedPinRun, FeedResult } from "../../src/servers/inspector/feed-messages.ts";
import { requestHost } from "../feed/host-requests.ts";
import { attempt, store } from "../page-state.ts";
import { ResultView } from "../parts/result-view.tsx";
import { formatDuration, formatTime, JsonValue } from "../parts/values.tsx";

/** The calls that are stored with the skills, and made again when their tools are saved. */
export function PinsView(): JSX.Element {
  const pins = store.pins.value;
  return (
    <div class="single">
      <h2>Pinned calls</h2>
      {store.pinProblem.value === undefined ? null : <p class="errors">{store.pinProblem.value}</p>}
      {pins.length === 0 ? <p>None. Call a tool of a skill, and pin the call: it is made again at each save.</p> : null}
      {pins.map((pin) => (
        <PinCard key={pin.id} pin={pin} />
      ))}
    </div>
  );
}

const isGood: Readonly<Record<FeedPinRun["outcome"], boolean>> = {
  passed: true,
  same: true,
  first: true,
  changed: false,
  failed: false,
  skipped: false,
};

function PinCard({ pin }: { readonly pin: FeedPin }): JSX.Element {
  const { id, name, skill, tool, arguments: args, expect, isAutomatic, lastRun } = pin;
  const isReadOnly = store.isReadOnly.value;
  const isReading = store.tools.value.get(`skill/${skill}/${tool}`)?.isReadOnly === true;
  const expected = lastRun?.result && expectationOf(lastRun.result);
  return (
    <section class="card" aria-label={`Pinned call ${name}`}>
      <h3>{name}</h3>
      <p>
        <strong>
          {skill}/{tool}
        </strong>{" "}
        <code class="cut">{JSON.stringify(args)}</code>{" "}
        <span class="hint">{isReading || isAutomatic ? "made again when its tool changes" : "made only when you ask"}</span>
      </p>
      {expect === undefined ? null : (
        <p>
          Expected: <code class="cut">{JSON.stringify(expect)}</code>
        </p>
      )}
      {isReading ? null : (
        <label>
          <input
            type="checkbox"
            checked={isAutomatic}
            disabled={isReadOnly}
            onChange={({ currentTarget }) => savePin(pin, { isAutomatic: currentTarget.checked })}
          />{" "}
          Make it again when its tool changes, although the tool does not claim to read only
        </label>
      )}
      <div class="buttons">
        <button type="button" disabled={isReadOnly} onClick={() => attempt(requestHost("pin.run", { pinId: id }))}>
          Run {name}
        </button>
        {expected === undefined ? null : (
          <button type="button" disabled={isReadOnly} onClick={() => savePin(pin, { expect: expected })}>
            Expect this result of {name}
          </button>
        )}
        {expect === undefined ? null : (
          <button type="button" disabled={isReadOnly} onClick={() => savePin(pin, { expect: undefined })}>
            Expect nothing of {name}
          </button>
        )}
        <button type="button" disabled={isReadOnly} onClick={() => attempt(requestHost("pin.remove", { pinId: id }))}>
          Remove {name}
        </button>
      </div>
      {lastRun === undefined ? null : <PinRun run={lastRun} />}
    </section>
  );
}

function savePin(pin: FeedPin, change: { readonly isAutomatic?: boolean; readonly expect?: Json | undefined }): void {
  const { id, name, tool, arguments: args, isAutomatic, expect } = { ...pin, ...change };
  attempt(requestHost("pin.save", { pin: { id, name, tool, arguments: args, isAutomatic, ...(expect && { expect }) } }));
}

/** What a later result must be to be as this one. Of a result that is not shown whole only how the call ended is known. */
function expectationOf({ code, text, structured }: FeedResult): Json {
  const isWhole = (value: unknown): boolean => !/"\$blob":|\[redacted\]|\[too /.test(JSON.stringify(value));
  if (code !== "success") return { code };
  if (structured !== undefined && isWhole(structured)) return { structured };
  return isWhole(text) ? { text } : { ok: true };
}

function PinRun({ run }: { readonly run: FeedPinRun }): JSX.Element {
  const { outcome, at, durationMs, previousDurationMs, reasons, diff, schemaDiff = [], isSignatureChanged, result } = run;
  return (
    <div aria-live="polite">
      <p>
        <span class={isGood[outcome] ? "badge good" : "badge bad"}>{outcome}</span> {formatTime(at)} {formatDuration(durationMs)}
        {previousDurationMs === undefined ? "" : ` (before: ${formatDuration(previousDurationMs)})`}
        {isSignatureChanged ? <span class="badge">definition changed</span> : null}
      </p>
      {reasons.length === 0 ? null : (
        <ul class="errors">
          {reasons.map((reason) => (
            <li key={reason}>{reason}</li>
          ))}
        </ul>
      )}
      {diff.length === 0 ? null : <DiffLines lines={diff} label="What differs in the result" />}
      {schemaDiff.length === 0 ? null : <DiffLines lines={schemaDiff} label="What differs in the definition" />}
      {result === undefined ? null : (
        <details>
          <summary>Result</summary>
          <ResultView result={result} />
        </details>
      )}
      <details>
        <summary>The whole run</summary>
        <JsonValue value={run} label="Run" />
      </details>
    </div>
  );
}

function DiffLines({ lines, label }: { readonly lines: readonly string[]; readonly label: string }): JSX.Element {
  return (
    // biome-ignore lint/a11y: it scrolls, so the keyboard must reach it, and it is neither a field set nor a landmark
    <div class="block" role="group" aria-label={label} tabIndex={0}>
      <pre>
        {lines.map((line, index) => (
          <span key={`${index} ${line}`} class={line.startsWith("+") ? "line added" : line.startsWith("-") ? "line removed" : "line"}>
            {line}
            {"\n"}
          </span>
        ))}
      </pre>
    </div>
  );
}
