import { isRecord } from "../../../base/json.ts";
import { createModel } from "../../../models/provider.ts";
import { badParams } from "../connection/params.ts";
import { type GivenProvider, selectionId } from "../request/session-providers.ts";
import { findSession } from "../sessions/session-registry.ts";
import type { MethodFamily } from "./method.ts";

type Fields = Readonly<Record<string, unknown>>;

/** The providers that clients gave a session. */
export const providers: MethodFamily = {
  "session.provider.add"({ server, client, params }) {
    const added = findSession(server, params).providers.add(params, client, checkProvider);
    return { models: added.map(({ model }) => describeDeclared(model)) };
  },
  async "session.provider.getEndpoint"({ server, client, params }) {
    const session = findSession(server, params);
    const model = params.optionalText("modelId") ?? session.session.config.turn.model;
    const given = session.providers.providerOf(model);
    // The runtime's own keys, and those of other clients, are never sent.
    if (given?.client !== client)
      throw badParams(params.method, "only the endpoint of a provider that this client gave is returned. Pass provider or providers.");
    return describeEndpoint(given, session.id);
  },
};

/** Reports wrong options now instead of at the first message. */
function checkProvider({ name: _name, hasBearerTokenProvider: _asked, ...options }: Fields): void {
  createModel({ ...(options as { readonly baseUrl: string }), model: "check" });
}

/** A model in the form of the protocol's lists. */
export interface DescribedModel {
  readonly id: string;
  readonly name: string;
  readonly capabilities: object;
}

/** A model that a client declared. */
export function describeDeclared(model: Fields): DescribedModel {
  const capabilities = recordOf(model["capabilities"]);
  const id = selectionId(model);
  return {
    id,
    name: typeof model["name"] === "string" ? model["name"] : id,
    capabilities: {
      supports: { vision: false, reasoningEffort: false, ...recordOf(capabilities["supports"]) },
      limits: {
        max_context_window_tokens: Number(model["maxContextWindowTokens"] ?? model["maxPromptTokens"] ?? 0),
        ...(typeof model["maxOutputTokens"] === "number" && { max_output_tokens: model["maxOutputTokens"] }),
        ...recordOf(capabilities["limits"]),
      },
    },
  };
}

async function describeEndpoint({ fields, client }: GivenProvider, sessionId: string): Promise<object> {
  const { type = "openai", wireApi, transport = "http", baseUrl, apiKey, bearerToken, headers, name = "default" } = fields;
  const asked = fields["hasBearerTokenProvider"] === true;
  const answer = asked ? await client.wire.request("providerToken.getToken", { sessionId, providerName: name }) : undefined;
  const token = asked ? recordOf(answer)["token"] : bearerToken;
  const isBearer = typeof token === "string" && token !== "";
  return {
    type,
    baseUrl,
    ...(type !== "anthropic" && { wireApi: wireApi ?? "completions", transport }),
    ...(typeof apiKey === "string" && !isBearer && { apiKey }),
    headers: { ...recordOf(headers), ...(isBearer && { authorization: `Bearer ${token}` }) },
  };
}

function recordOf(value: unknown): Fields {
  return isRecord(value) ? value : {};
}
