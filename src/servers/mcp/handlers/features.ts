import type { CompleteResult, GetPromptResult, ReadResourceResult, Server } from "@modelcontextprotocol/server";
import { HostError } from "../../../base/errors.ts";
import type { Logger } from "../../../base/logger.ts";
import type { ClientChannel, WithClient } from "../client-channel.ts";
import { guarded, resourceNotFound } from "../fast-path-server.ts";
import { missingCapability } from "../input-required-calls.ts";
import type { ServedSession } from "../served-session.ts";
import type { SkillResources } from "./skills-extension.ts";

/** What the handlers for prompts and resources work with. */
export interface FeatureParts {
  readonly served: ServedSession;
  readonly server: Server;
  readonly converse: WithClient;
  readonly log: Logger;
  readonly isModern: boolean;
  readonly shelf: SkillResources;
}

// The protocol's limit for what one answer suggests.
const maxSuggestions = 100;

/** Has a server answer requests for prompts, resources, templates and suggestions. */
export function serveFeatures(parts: FeatureParts): void {
  const { served, server, log } = parts;
  const { session } = served;
  server.setRequestHandler("prompts/list", () => served.whenStarted(() => ({ prompts: [...session.listPrompts()] as never })));
  server.setRequestHandler("resources/list", () => served.whenStarted(() => ({ resources: [...session.listResources()] as never })));
  server.setRequestHandler("resources/templates/list", () =>
    served.whenStarted(() => ({ resourceTemplates: [...session.listResourceTemplates()] as never })),
  );
  server.setRequestHandler("prompts/get", ({ params: { name, arguments: args = {} } }, context) => {
    const request = { method: "prompts/get", name, arguments: args };
    return guarded(log, `prompt "${name}"`, () =>
      parts.converse(request, context, (conversation) => getPrompt(parts, name, args, conversation)),
    );
  });
  server.setRequestHandler("resources/read", ({ params: { uri } }, context) => {
    const request = { method: "resources/read", name: uri, arguments: undefined };
    return guarded(log, `resource ${uri}`, async () => {
      const ofSkill = await parts.shelf.read(uri);
      if (ofSkill !== undefined) return { contents: [...ofSkill] } as ReadResourceResult;
      return parts.converse(request, context, (conversation) => readResource(parts, uri, conversation));
    });
  });
  server.setRequestHandler("completion/complete", ({ params }, { mcpReq }) =>
    guarded(log, "completion", () => complete(served, params, mcpReq.signal)),
  );
}

async function getPrompt(
  { served, isModern }: FeatureParts,
  name: string,
  args: Readonly<Record<string, string>>,
  conversation: ClientChannel,
): Promise<GetPromptResult> {
  return settle(served.session.getPrompt(name, args, conversation), conversation, isModern) as Promise<GetPromptResult>;
}

async function readResource({ served, isModern }: FeatureParts, uri: string, conversation: ClientChannel): Promise<ReadResourceResult> {
  try {
    const contents = await settle(served.session.readResource(uri, conversation), conversation, isModern);
    return { contents: [...contents] } as ReadResourceResult;
  } catch (error) {
    if (error instanceof HostError && error.code === "RESOURCE_UNKNOWN") throw resourceNotFound(uri);
    throw error;
  }
}

/** What failed because the client could not be asked is the client's to make up for. */
async function settle<T>(work: Promise<T>, conversation: ClientChannel, isModern: boolean): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (isModern && conversation.missing !== undefined) throw missingCapability(conversation.missing);
    throw error;
  }
}

type CompleteParams = {
  readonly ref: { readonly type: "ref/prompt"; readonly name: string } | { readonly type: "ref/resource"; readonly uri: string };
  readonly argument: { readonly name: string; readonly value: string };
  readonly context?: { readonly arguments?: Readonly<Record<string, string>> | undefined } | undefined;
};

async function complete(served: ServedSession, params: CompleteParams, signal: AbortSignal): Promise<CompleteResult> {
  const { ref, argument, context } = params;
  const found = await served.session.complete(ref, argument, { arguments: context?.arguments ?? {}, signal });
  const values = found.values.slice(0, maxSuggestions);
  const total = found.total ?? found.values.length;
  return { completion: { values, total, hasMore: found.hasMore ?? total > values.length } };
}
