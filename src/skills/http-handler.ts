import { boundedFetch } from "../io/bounded-fetch.ts";
import type { ToolInvocation } from "../tools/tool.ts";
import { type Arguments, fillAddress, fillJson, fillText } from "./fill-template.ts";

export interface HttpSpec {
  readonly method: string;
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

const maxBytes = 10 * 1024 * 1024;

/**
 * A handler that makes one HTTP request. Arguments cannot leave the place in the address where they stand; redirects
 * stay on the same host; the answer's body is the result, and a status of 400 or more a failure.
 */
export function createHttpHandler(spec: HttpSpec) {
  return async (args: Arguments, invocation: ToolInvocation): Promise<object> => {
    const url = fillAddress(spec.url, args, process.env);
    if (leavesItsPlace(url))
      return { textResultForLlm: 'An argument of "." or ".." cannot stand in this tool\'s address.', resultType: "failure" };
    const body = requestBody(spec.body, args);
    const headers = Object.fromEntries(
      Object.entries(spec.headers ?? {}).map(([name, value]) => [name, fillText(value, args, process.env)]),
    );
    const outcome = await boundedFetch({
      url,
      method: spec.method,
      headers: { accept: "application/json, text/*;q=0.9, */*;q=0.5", ...body?.headers, ...headers },
      ...(body === undefined ? {} : { body: body.text }),
      signal: invocation.signal,
      maxBytes,
    });
    if (outcome.kind === "failed")
      return { textResultForLlm: "The service of this tool could not be reached.", resultType: "failure", error: outcome.message };
    const text = outcome.truncated ? `${outcome.text}\n[The answer was longer than ${maxBytes} bytes and ends here.]` : outcome.text;
    const telemetry = { toolTelemetry: { httpStatus: outcome.status } };
    if (outcome.status < 400) return { textResultForLlm: text, resultType: "success", ...telemetry };
    const message = `The service of this tool answered with status ${outcome.status}.`;
    return { textResultForLlm: text === "" ? message : `${message}\n${text}`, resultType: "failure", error: message, ...telemetry };
  };
}

/** Whether a path segment came out as one that URLs resolve away, written plainly or as %2e: it would lead to another path. */
function leavesItsPlace(url: string): boolean {
  const path = url.replace(/[?#].*$/s, "").replaceAll(/%2e/gi, ".");
  return path.split(/[\\/]/).some((segment) => segment === "." || segment === "..");
}

function requestBody(template: unknown, args: Arguments): { text: string; headers: Record<string, string> } | undefined {
  if (template === undefined) return undefined;
  const filled = fillJson(template, args);
  if (typeof filled === "string") return { text: filled, headers: { "content-type": "text/plain; charset=utf-8" } };
  return { text: JSON.stringify(filled ?? null), headers: { "content-type": "application/json" } };
}
