import { isRecord } from "../base/json.ts";
import { errorOfBody } from "./http-error.ts";
import type { Endpoint } from "./provider-endpoint.ts";
import { readAnswer } from "./read-answer.ts";

/** An endpoint's description of a model. Most endpoints report only its id. */
export interface ModelInfo {
  readonly id: string;
  readonly name?: string;
  /** The tokens of messages, tools and reply combined. */
  readonly contextWindow?: number;
  readonly maxOutputTokens?: number;
  /** Whether the model accepts images. */
  readonly vision?: boolean;
  /** The paths at which the endpoint serves the model, such as `/responses`. */
  readonly supportedEndpoints?: readonly string[];
}

/** The models of an endpoint, in its order. @throws ModelError */
export async function fetchModels(
  endpoint: Endpoint,
  signal: AbortSignal,
  query: Readonly<Record<string, string>>,
): Promise<readonly ModelInfo[]> {
  return endpoint.request({ method: "GET", path: "/models", query, signal }, async (answer) => {
    for await (const part of readAnswer(answer)) {
      if (part.kind !== "whole") break;
      const problem = errorOfBody(part.value, answer.fault);
      if (problem !== undefined) throw problem;
      const list = isRecord(part.value) ? (part.value["data"] ?? part.value["models"]) : part.value;
      if (Array.isArray(list)) return list.flatMap(toModelInfo);
    }
    throw answer.fault("MODEL_BAD_ANSWER", "did not send a list of models. Check the base URL.", { retryable: false });
  });
}

function toModelInfo(entry: unknown): readonly ModelInfo[] {
  const id = isRecord(entry) ? entry["id"] : undefined;
  if (!isRecord(entry) || typeof id !== "string" || id === "") return [];
  const capabilities = record(entry["capabilities"]);
  const limits = record(capabilities["limits"]);
  const top = record(entry["top_provider"]);
  const contextWindow = firstCount(
    limits["max_context_window_tokens"],
    entry["context_length"],
    entry["context_window"],
    entry["max_context_length"],
    entry["max_model_len"],
    entry["max_input_tokens"],
  );
  const maxOutputTokens = firstCount(
    limits["max_output_tokens"],
    entry["max_completion_tokens"],
    top["max_completion_tokens"],
    entry["max_input_tokens"] === undefined ? undefined : entry["max_tokens"],
  );
  const vision = visionOf(entry, capabilities);
  const supportedEndpoints = textsOf(entry["supported_endpoints"]);
  const name = entry["name"] ?? entry["display_name"];
  return [
    {
      id,
      ...(typeof name === "string" ? { name } : {}),
      ...(contextWindow === undefined ? {} : { contextWindow }),
      ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
      ...(vision === undefined ? {} : { vision }),
      ...(supportedEndpoints === undefined ? {} : { supportedEndpoints }),
    },
  ];
}

function visionOf(entry: Readonly<Record<string, unknown>>, capabilities: Readonly<Record<string, unknown>>): boolean | undefined {
  const inputs = record(entry["architecture"])["input_modalities"];
  if (Array.isArray(inputs)) return inputs.includes("image");
  const flag = record(capabilities["supports"])["vision"] ?? capabilities["vision"] ?? record(capabilities["image_input"])["supported"];
  return typeof flag === "boolean" ? flag : undefined;
}

function textsOf(value: unknown): readonly string[] | undefined {
  return Array.isArray(value) ? value.filter((item): item is string => typeof item === "string") : undefined;
}

function record(value: unknown): Readonly<Record<string, unknown>> {
  return isRecord(value) ? value : {};
}

function firstCount(...values: readonly unknown[]): number | undefined {
  return values.find((value): value is number => typeof value === "number" && Number.isSafeInteger(value) && value > 0);
}
