import type { ChatMessage } from "../../../models/model.ts";
import { estimateTokens } from "../../../session/prompt/system-prompt.ts";
import type { Session } from "../../../session/session.ts";
import type { Tool } from "../../../tools/tool.ts";
import { badParams } from "../connection/params.ts";
import { findSession } from "../sessions/session-registry.ts";
import type { MethodFamily } from "./method.ts";

/** What fills the context of a session's model, by the same estimate as the totals. */
export const contextAttribution: MethodFamily = {
  "session.metadata.getContextAttribution"({ server, params }) {
    const { session } = findSession(server, params);
    return { contextAttribution: attributionOf(session) };
  },
  "session.metadata.getContextHeaviestMessages"({ server, params }) {
    const { session } = findSession(server, params);
    const limit = params.optionalNumber("limit") ?? defaultLimit;
    if (!Number.isInteger(limit) || limit < 1) throw badParams(params.method, "limit must be a positive integer.");
    const messages = measured(session).sort((a, b) => b.tokens - a.tokens);
    return { totalTokens: session.conversation.contextUse?.currentTokens ?? 0, messages: messages.slice(0, limit) };
  },
};

const defaultLimit = 10;

interface Measured {
  readonly id: string;
  readonly label: string;
  readonly role: string;
  readonly tokens: number;
}

function attributionOf(session: Session): object | null {
  const use = session.conversation.contextUse;
  if (use === undefined) return null;
  const { infinite, model = "" } = session.config.turn;
  const { tokenLimit, currentTokens, systemTokens, conversationTokens, toolDefinitionsTokens } = use;
  const buffer = Math.floor(tokenLimit * (1 - (infinite?.exhaustionThreshold ?? 1)));
  const tools = toolEntries(session, toolDefinitionsTokens);
  const mcpTools = sumOf(tools.filter(({ isMcp }) => isMcp));
  return {
    totalTokens: currentTokens,
    modelId: model,
    modelSource: model === "" ? "default" : "selected",
    promptTokenLimit: tokenLimit,
    limit: tokenLimit,
    bufferTokens: buffer,
    compactionThreshold: Math.floor(tokenLimit * (infinite?.backgroundThreshold ?? 1)),
    categories: {
      systemPrompt: systemTokens,
      // They are part of the system message here.
      customInstructions: 0,
      systemTools: Math.max(0, toolDefinitionsTokens - mcpTools),
      mcpTools,
      messages: conversationTokens,
      freeSpace: Math.max(0, tokenLimit - currentTokens - buffer),
      buffer,
    },
    entries: [
      { kind: "system", id: "system:prompt", label: "System prompt", tokens: systemTokens },
      ...tools.map(({ isMcp: _isMcp, ...entry }) => entry),
      ...resultEntries(session),
    ],
    compactions: { count: session.history.compactions },
  };
}

/** The definitions of tools, scaled so that their sum is the total. */
function toolEntries({ tools, catalog }: Session, total: number) {
  const sizes = tools.map(({ name, description = "", parameters }) => name.length + description.length + sizeOfJson(parameters));
  const all = sizes.reduce((sum, size) => sum + size, 0) || 1;
  return tools.map(({ name }, index) => {
    const tool: Tool | undefined = catalog.executables.get(name);
    const tokens = Math.floor(((sizes[index] ?? 0) / all) * total);
    return { kind: "toolDefinition", id: `toolDefinition:${name}`, label: name, tokens, isMcp: tool?.origin.kind === "mcp" };
  });
}

/** What the results of each tool take together. */
function resultEntries(session: Session): readonly object[] {
  const byTool = new Map<string, number>();
  for (const { label, role, tokens } of measured(session)) if (role === "tool") byTool.set(label, (byTool.get(label) ?? 0) + tokens);
  return [...byTool].map(([label, tokens]) => {
    const name = label.slice(toolLabel.length);
    return { kind: "tool", id: `tool:${name}`, label: name, tokens };
  });
}

const toolLabel = "tool: ";

function measured({ history }: Session): Measured[] {
  const names = new Map<string, string>();
  return history.messages().map((message, index) => {
    if (message.role === "assistant") for (const { id, name } of message.toolCalls ?? []) names.set(id, name);
    const label = message.role === "tool" ? `${toolLabel}${names.get(message.toolCallId) ?? "unknown"}` : message.role;
    return { id: `message:${index}`, label, role: message.role, tokens: estimateTokens(sizeOf(message)) };
  });
}

function sizeOf(message: ChatMessage): number {
  if (message.role === "assistant")
    return message.content.length + sizeOfJson(message.toolCalls?.map(({ argumentsText }) => argumentsText));
  if (typeof message.content === "string") return message.content.length;
  return message.content.reduce((size, part) => size + (part.type === "text" ? part.text.length : 0), 0);
}

function sizeOfJson(value: unknown): number {
  return value === undefined ? 0 : JSON.stringify(value).length;
}

function sumOf(entries: readonly { readonly tokens: number }[]): number {
  return entries.reduce((sum, { tokens }) => sum + tokens, 0);
}
