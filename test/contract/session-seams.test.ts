import { describe, expect, expectTypeOf, test } from "vitest";
import type { AgentScope, CallOutcome, PreparedCall, ToolCall } from "../../src/session/calls/tool-call.ts";
import type { ClientRequest } from "../../src/session/clients/client-requests.ts";
import type { ToolsDiff } from "../../src/session/clients/pushed-tools.ts";
import type { Attachment } from "../../src/session/clients/session-client.ts";
import type { RecordedEvent } from "../../src/session/history/events.ts";
import type { Session } from "../../src/session/session.ts";
import type { SessionChange } from "../../src/session/session-config.ts";
import type { Asks, ToolDefinition } from "../../src/tools/tool.ts";
import { recordEvents, sessionWith, settleMicrotasks } from "../session/session-kit.ts";

/** The interface that servers, turn loops and sub-agents use. A change here affects all of them. */
interface SessionSeams {
  readonly events: {
    append(type: string, data: object, agentId?: string): void;
    addSink(sink: (event: RecordedEvent) => void): Disposable;
  };
  readonly asks: { readonly pending: readonly ClientRequest[]; answer(id: string, answer: unknown, from: string): boolean };
  attach(client: { level: "host" | "connection" | "extension"; answers: readonly (keyof Asks)[] }): Attachment;
  update(change: SessionChange): Promise<void>;
  prepare(calls: readonly ToolCall[], agent?: AgentScope): Promise<readonly PreparedCall[]>;
  run(call: PreparedCall): Promise<CallOutcome>;
}

test("a session has the members that servers and agents build on", () => {
  expectTypeOf<Session>().toExtend<SessionSeams>();
  expectTypeOf<Attachment>().toExtend<AsyncDisposable & { readonly id: string; setTools(all: readonly ToolDefinition[]): ToolsDiff }>();
  expectTypeOf<CallOutcome>().toHaveProperty("endsTurn");
});

describe("a turn of a model, driven through this interface alone", () => {
  test("a remote client answers the calls of a message, and a tool that it adds during the turn is in the next message", async () => {
    const session: Session = sessionWith([{ name: "local", handler: () => "local result" }]);
    const wire = session.attach({ level: "connection", answers: ["tool", "permission"] });
    wire.setTools([{ name: "remote", skipPermission: true }]);
    const sink = session.events.addSink(({ type, data }) => {
      if (type !== "external_tool.requested") return;
      wire.setTools([
        { name: "remote", skipPermission: true },
        { name: "extra", skipPermission: true },
      ]);
      session.asks.answer(String(data["requestId"]), { result: "remote result" }, wire.id);
    });
    const scope = session.createScope({ turnId: "turn-1" });
    const first = await session.prepare(
      ["local", "remote", "extra"].map((name, index) => ({ id: `c${index}`, name, arguments: {} })),
      scope,
    );
    const outcomes = await Promise.all(first.map((prepared) => session.run(prepared)));
    expect(outcomes.map(({ toolCallId, code }) => [toolCallId, code])).toEqual([
      ["c0", "success"],
      ["c1", "success"],
      ["c2", "unknown_tool"],
    ]);
    expect(scope.catalog.executables.has("extra")).toBe(true);
    sink[Symbol.dispose]();
  });

  test("an aborted turn settles its own calls and none of another turn", async () => {
    const session = sessionWith([{ name: "hangs", handler: () => new Promise(() => {}) }]);
    const events = recordEvents(session, "tool.execution_complete");
    const turn = new AbortController();
    const run = async (id: string, scope: AgentScope): Promise<CallOutcome> => {
      const [prepared] = await session.prepare([{ id, name: "hangs", arguments: {} }], scope);
      return session.run(prepared!);
    };
    const aborted = run("c1", session.createScope({ signal: turn.signal }));
    const other = run("c2", session.createScope());
    await settleMicrotasks();
    turn.abort();
    expect((await aborted).code).toBe("cancelled");
    expect(events).toHaveLength(1);
    await session.disconnect();
    expect((await other).code).toBe("session_closed");
  });
});
