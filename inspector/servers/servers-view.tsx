import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import type { FeedTraffic } from "../../src/servers/inspector/feed-messages.ts";
import type { ServerInfo } from "../../src/session/mcp/server-connections.ts";
import { requestHost } from "../feed/host-requests.ts";
import { linkTo, route } from "../navigation/route.ts";
import { announce, attempt, store } from "../page-state.ts";
import { counted, formatDuration, formatTime, JsonValue, TextValue } from "../parts/values.tsx";
import { VirtualList } from "../parts/virtual-list.tsx";

/** The MCP servers with their state, tools and messages. */
export function ServersView(): JSX.Element {
  const servers = [...store.servers.value.values()];
  const [name = ""] = route.value.parts;
  const server = store.servers.value.get(name);
  return (
    <div class="columns">
      <section class="list" aria-label="MCP servers">
        {servers.length === 0 ? <p>No MCP servers are configured.</p> : null}
        {servers.map((each) => (
          <a key={each.name} class="row" href={linkTo("servers", each.name)} aria-current={each.name === name ? "true" : undefined}>
            {each.name} <span class={each.status === "failed" ? "badge bad" : "badge"}>{each.status}</span>
          </a>
        ))}
      </section>
      <section class="detail" aria-label="Details">
        {server === undefined ? <p>Choose a server.</p> : <ServerPage key={server.name} server={server} />}
      </section>
    </div>
  );
}

function ServerPage({ server }: { readonly server: ServerInfo }): JSX.Element {
  const {
    name,
    status,
    error,
    transport,
    pid,
    protocolVersion,
    instructions,
    tools,
    held,
    stderrTail,
    origin,
    implementation,
    capabilities,
  } = server;
  const isReadOnly = store.isReadOnly.value;
  return (
    <article class="tall">
      <h2>{name}</h2>
      <p>
        <button
          type="button"
          disabled={isReadOnly}
          onClick={() => attempt(requestHost("server.restart", { name }).then(() => announce(`${name} was restarted.`)))}
        >
          Restart
        </button>
      </p>
      <dl class="facts">
        <dt>State</dt>
        <dd>{status}</dd>
        <dt>Configured by</dt>
        <dd>
          {origin.kind} {origin.source}
        </dd>
        {implementation === undefined ? null : (
          <>
            <dt>Program</dt>
            <dd>
              {implementation.title ?? implementation.name} {implementation.version}
            </dd>
          </>
        )}
        {transport === undefined ? null : (
          <>
            <dt>Transport</dt>
            <dd>
              {transport} {pid === undefined ? "" : `process ${pid}`} {protocolVersion ?? ""}
            </dd>
          </>
        )}
      </dl>
      {error === undefined ? null : <TextValue value={error} label="Error" />}
      {held.length === 0 ? null : (
        <>
          <h3>Held back until they are approved</h3>
          {held.map((part) => (
            <div key={`${part.kind} ${part.name}`} class="card">
              <p>
                <strong>{part.name}</strong> {part.kind} <span class="hint">{part.reason}</span>
              </p>
              {part.diff === undefined ? null : <TextValue value={part.diff} label={`Changes of ${part.name}`} />}
              <button
                type="button"
                disabled={isReadOnly}
                onClick={() =>
                  attempt(
                    requestHost("approve", { server: name, tool: part.name }).then(({ count }) =>
                      announce(`${counted(count, "definition")} approved.`),
                    ),
                  )
                }
              >
                Approve {part.name}
              </button>
            </div>
          ))}
        </>
      )}
      {capabilities === undefined ? null : (
        <details>
          <summary>Capabilities: {Object.keys(capabilities).join(", ") || "none"}</summary>
          <JsonValue value={capabilities} label="Capabilities" />
        </details>
      )}
      {instructions === undefined ? null : (
        <details>
          <summary>Instructions</summary>
          <TextValue value={instructions} label="Instructions" />
        </details>
      )}
      <details>
        <summary>{counted(tools.length, "tool")}</summary>
        <ul>
          {tools.map((tool) => (
            <li key={tool.name}>
              {tool.name} <span class="hint">{tool.description}</span>
            </li>
          ))}
        </ul>
      </details>
      {stderrTail === undefined || stderrTail === "" ? null : (
        <details>
          <summary>Standard error</summary>
          <TextValue value={stderrTail} label="Standard error" />
        </details>
      )}
      <Traffic name={name} />
    </article>
  );
}

function Traffic({ name }: { readonly name: string }): JSX.Element {
  void store.traffic.version.value;
  const selected = useSignal<FeedTraffic | undefined>(undefined);
  const own = store.traffic.entries.filter(({ server }) => server === name);
  const chosen = selected.value;
  const partner =
    chosen?.rpcId === undefined
      ? undefined
      : own.find((other) => other !== chosen && other.rpcId === chosen.rpcId && other.direction !== chosen.direction);
  return (
    <>
      <h3>Messages</h3>
      <VirtualList
        label={`Messages of ${name}`}
        items={own}
        rowHeight={26}
        followsEnd
        keyOf={({ id }) => String(id)}
        row={(entry) => (
          <button type="button" class="row event" aria-pressed={entry === chosen} onClick={() => (selected.value = entry)}>
            <span class="time">{formatTime(entry.at)}</span>
            <span class="direction">{entry.direction}</span>
            <span class="cut">{entry.method ?? (entry.rpcId === undefined ? "" : `answer to ${entry.rpcId}`)}</span>
          </button>
        )}
      />
      {chosen === undefined ? null : (
        <section class="drawer" aria-label="The chosen message">
          <button type="button" class="small" onClick={() => (selected.value = undefined)}>
            Close
          </button>
          <div class="pair">
            <div>
              <h4>{chosen.direction}</h4>
              <JsonValue value={chosen.message} label={chosen.direction} />
            </div>
            {partner === undefined ? null : (
              <div>
                <h4>
                  {partner.direction} {formatDuration(Math.abs(partner.at - chosen.at))} {partner.at < chosen.at ? "before" : "after"}
                </h4>
                <JsonValue value={partner.message} label={partner.direction} />
              </div>
            )}
          </div>
        </section>
      )}
    </>
  );
}
