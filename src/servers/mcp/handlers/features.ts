import type { CompleteResult, GetPromptResult, ReadResourceResult, Server } from "@modelcontextprotocol/server";
import { HostError } from "../../../base/errors.ts";
import type { Logger } from "../../../base/logger.ts";
import type { ClientChannel, WithClient } from "../client-channel.ts";
import { guarded, resourceNotFound } from "../fast-path-server.ts";
import { missingCapability } from "../input-required-calls.ts";
import type { ServedSession } from "../served-session.ts";
import type { SkillResources } from "./skills-extension.ts";

/** The parts that the handlers of prompts and resources need. */
export interface FeatureParts {
  readonly served: ServedSession;
  readonly server: Server;
  readonly withClient: WithClient;
  readonly log: Logger;
  readonly isModern: boolean;
  readonly skills: SkillResources;
}

// The protocol's limit of suggestions in one answer.
const maxSuggestions = 100;

/** Adds the handlers of prompts, resources, templates and completions to a server. */
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
    return guarded(log, `prompt "${name}"`, () => parts.withClient(request, context, (channel) => getPrompt(parts, name, args, channel)));
  });
  server.setRequestHandler("resources/read", ({ params: { uri } }, context) => {
    const request = { method: "resources/read", name: uri, arguments: undefined };
    return guarded(log, `resource ${uri}`, async () => {
      const ofSkill = await parts.skills.read(uri);
      if (ofSkill !== undefined) return { contents: [...ofSkill] } as ReadResourceResult;
      return parts.withClient(request, context, (channel) => readResource(parts, uri, channel));
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
  channel: ClientChannel,
): Promise<GetPromptResult> {
  return settle(served.session.getPrompt(name, args, channel), channel, isModern) as Promise<GetPromptResult>;
}

async function readResource({ served, isModern }: FeatureParts, uri: string, channel: ClientChannel): Promise<ReadResourceResult> {
  try {
    const contents = await settle(served.session.readResource(uri, channel), channel, isModern);
    return { contents: [...contents] } as ReadResourceResult;
  } catch (error) {
    if (error instanceof HostError && error.code === "RESOURCE_UNKNOWN") throw resourceNotFound(uri);
    throw error;
  }
}

/** Reports a failure because of missing capabilities, so that the client can declare them and retry. */
async function settle<T>(work: Promise<T>, channel: ClientChannel, isModern: boolean): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (isModern && channel.missing !== undefined) throw missingCapability(channel.missing);
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
