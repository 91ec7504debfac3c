import { isRecord } from "../../../base/json.ts";
import type { ModelInfo } from "../../../models/list-models.ts";
import { listModels, type ProviderOptions } from "../../../models/provider.ts";
import type { SessionChange } from "../../../session/session-config.ts";
import { isPluginProvider, type SessionProvider } from "../../../session/turns/turn-options.ts";
import { badParams, Params, refused } from "../connection/params.ts";
import type { ServerContext } from "../context.ts";
import { carriedBy } from "../request/apply-session-request.ts";
import { findEndpoint, toEndpoint } from "../request/model-endpoint.ts";
import type { CopilotSession } from "../sessions/copilot-session.ts";
import { findSession } from "../sessions/session-registry.ts";
import type { Call, MethodFamily } from "./method.ts";
import { type DescribedModel, describeDeclared } from "./providers.ts";

/** Models, and the model requests that a client sends for the runtime. */
export const models: MethodFamily = {
  async "models.list"(call) {
    const { server, client } = call;
    const { environment, gitHubToken } = server.options;
    const carried = carriedBy(server, "");
    const provider = findEndpoint(new Params("models.list", {}), {
      sessionId: "",
      client,
      environment,
      gitHubToken,
      acquireToken: undefined,
      carried,
    }).provider;
    if (provider === undefined)
      throw new Error("Not authenticated: no model endpoint is configured. Set COPILOT_API_URL or OPENAI_BASE_URL.");
    return { models: await list(provider, call) };
  },
  // Only the endpoint knows its models.
  "models.getBuiltInCatalog": () => ({ models: [] }),
  async "session.model.list"(call) {
    const { session, providers, allowedModels } = findSession(call.server, call.params);
    const { provider } = session.config.turn;
    const declared = providers.models.map(describeDeclared);
    // A provider that need not list its models serves the declared ones nevertheless.
    const listed = provider === undefined ? [] : await list(provider, call).catch((error) => orNone(error, declared));
    return { list: [...declared, ...listed].filter(({ id }) => allowedModels?.includes(id) !== false) };
  },
  "session.model.getCurrent"({ server, params }) {
    const { model, reasoningEffort } = findSession(server, params).session.config.turn;
    return { ...(model !== undefined && { modelId: model }), ...(reasoningEffort !== undefined && { reasoningEffort }) };
  },
  async "session.model.switchTo"({ server, params }) {
    const session = findSession(server, params);
    const modelId = params.text("modelId");
    session.assertAllowed(modelId);
    const effort = params.optionalText("reasoningEffort");
    const capabilities = params.optionalRecord("modelCapabilities") as SessionChange["modelCapabilities"];
    await session.session.update({
      model: modelId,
      ...changeOfProvider(server, session, modelId),
      ...(effort !== undefined && { reasoningEffort: effort }),
      ...(capabilities !== undefined && { modelCapabilities: capabilities }),
    });
    return { modelId, status: "switched" };
  },
  async "session.model.setReasoningEffort"({ server, params }) {
    const { session } = findSession(server, params);
    const reasoningEffort = params.text("reasoningEffort");
    await session.update({ reasoningEffort });
    return { reasoningEffort };
  },
  /** The model and effort of a policy or a repository; a policy counts before the command line, and that before the repository. */
  async "session.model.applyStartupOverlay"({ server, params }) {
    const wired = findSession(server, params);
    const { session } = wired;
    const managed = params.optionalText("deviceManagedModel") ?? params.optionalText("serverManagedModel");
    const repository = params.optionalText("repoModel");
    const effort = params.optionalText("repoReasoningEffort");
    const model = managed ?? params.optionalText("cliModel") ?? repository;
    // An effort of the repository belongs to the model that it names.
    const isOfRepository = effort !== undefined && (model === undefined || model === repository);
    const change = { ...(model !== undefined && { model }), ...(isOfRepository && { reasoningEffort: effort }) };
    wired.assertAllowed(model);
    if (Object.keys(change).length > 0) await session.update(change);
    const modelId = session.config.turn.model;
    return { ...(modelId !== undefined && { modelId }), ...(model !== undefined && { status: "switched" }) };
  },
  /** Which models the session may use. The session is switched to the first of them if its own is not among them. */
  async "session.model.setAllowedModels"({ server, params }) {
    const session = findSession(server, params);
    if (!params.has("allowedModels")) throw badParams(params.method, "allowedModels must be an array of strings, or null.");
    const given = params.optionalTexts("allowedModels")?.map((id) => id.trim());
    if (given?.length === 0 || given?.includes("") === true) {
      throw badParams(params.method, "allowedModels must name models; null allows all.");
    }
    const allowed = given && [...new Set(given)];
    const before = session.session.config.turn.model;
    const [first] = allowed ?? [];
    if (first !== undefined && (before === undefined || allowed?.includes(before) === false)) {
      await session.session.update({ model: first, ...changeOfProvider(server, session, first) });
    }
    session.allowedModels = allowed;
    const modelId = session.session.config.turn.model;
    return {
      ...(allowed !== undefined && { allowedModels: allowed, fallbackModel: first }),
      effectiveAllowedModels: allowed ?? ["*"],
      ...(modelId !== undefined && { modelId }),
    };
  },
  // No endpoint chooses among models by a preference, so there is only the default to return to.
  "session.model.switchAutoTier"({ server, params }) {
    findSession(server, params);
    const tier = params.optionalText("autoTier");
    if (tier === undefined) return { status: "unchanged" };
    throw refused(params.method, "no model is chosen automatically. Choose one with session.model.switchTo.");
  },
  // Model requests count against no quota.
  "account.getQuota": () => ({ quotaSnapshots: {} }),
  "account.getCurrentAuth": ({ server: { options } }) => (options.gitHubToken === undefined ? {} : { authInfo: tokenOfEnvironment }),
  "llmInference.setProvider"({ client }) {
    client.carriesModelRequests = true;
    return { success: true };
  },
  "llmInference.httpResponseStart"({ client, params }) {
    const status = params.optionalNumber("status") ?? 0;
    return { accepted: client.modelRequests.begin(params.text("requestId"), status, params.optionalRecord("headers") ?? {}) };
  },
  "llmInference.httpResponseChunk"({ client, params }) {
    const requestId = params.text("requestId");
    const error = params.optionalRecord("error");
    if (error !== undefined) return { accepted: client.modelRequests.fail(requestId, String(error["message"] ?? "The request failed.")) };
    const data = params.optionalText("data") ?? "";
    const chunk = Buffer.from(data, params.flag("binary") ? "base64" : "utf8");
    return { accepted: client.modelRequests.receive(requestId, chunk, params.flag("end")) };
  },
};

/** A model that a client declared is asked at its provider; another one at the provider that the session had at first. */
export function changeOfProvider(server: ServerContext, { id, session, providers }: CopilotSession, modelId: string): SessionChange {
  const declared = providers.find(modelId);
  if (declared === undefined) return providers.returnToFirst() ?? {};
  providers.leaveFirst(session.config.turn.provider);
  const { provider, capabilities } = toEndpoint(declared, { sessionId: id, client: declared.client, carried: carriedBy(server, id) });
  const named = { wireModel: String(declared.model["id"]), ...(provider as ProviderOptions) };
  return { provider: named, ...(isRecord(capabilities) && { modelCapabilities: capabilities }) };
}

function orNone(error: unknown, declared: readonly object[]): readonly DescribedModel[] {
  if (declared.length === 0) throw error;
  return [];
}

/** SDKs require every field. The login is unknown, and clients must not see the token. */
const tokenOfEnvironment = { type: "env", host: "https://github.com", login: "", token: "", envVar: "" } as const;

async function list(provider: SessionProvider, call: Call): Promise<readonly DescribedModel[]> {
  if (isPluginProvider(provider)) return [];
  const found = await listModels({ ...(provider as ProviderOptions), retries: 1 }, { signal: call.signal() });
  return found.map(describe);
}

function describe({ id, name = id, contextWindow, maxOutputTokens, vision }: ModelInfo): DescribedModel {
  return {
    id,
    name,
    capabilities: {
      supports: { vision: vision ?? false, reasoningEffort: false },
      limits: {
        max_context_window_tokens: contextWindow ?? 0,
        ...(maxOutputTokens !== undefined && { max_output_tokens: maxOutputTokens }),
      },
    },
  };
}
