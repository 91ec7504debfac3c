import type { Diagnostic } from "../../base/diagnostic.ts";
import { HostError } from "../../base/errors.ts";
import { exactJson, findHidden } from "../../base/hidden-characters.ts";
import type { McpServerSpec } from "../../formats/mcp/mcp-server-spec.ts";
import type { Prompt } from "../../tools/prompt.ts";
import type { Resource, ResourceTemplate } from "../../tools/resource.ts";
import { isRecord } from "../../tools/schema/walk-schema.ts";
import type { SupervisedServer } from "../supervisor/lease.ts";
import type { ServerLists } from "../supervisor/server-lists.ts";
import { MadeBefore } from "./made-before.ts";
import { remotePrompt } from "./remote-prompt.ts";
import { remoteResource, remoteResourceTemplate } from "./remote-resource.ts";

type Json = Readonly<Record<string, unknown>>;

interface Offers {
  readonly prompts: readonly Prompt[];
  readonly resources: readonly Resource[];
  readonly resourceTemplates: readonly ResourceTemplate[];
}

/** The prompts and resources of one server, each the same object as long as its definition is the same. */
export class ServerMaterial {
  readonly #server: SupervisedServer;
  readonly #prompts: MadeBefore<Attempt<Prompt>> = new MadeBefore();
  readonly #resources: MadeBefore<Attempt<Resource>> = new MadeBefore();
  readonly #templates: MadeBefore<Attempt<ResourceTemplate>> = new MadeBefore();

  constructor(server: SupervisedServer) {
    this.#server = server;
  }

  make(lists: ServerLists, { name: serverName }: McpServerSpec): { readonly offers: Offers; readonly diagnostics: readonly Diagnostic[] } {
    const { completions, resources: offered } = lists.capabilities;
    const options = {
      server: this.#server,
      serverName,
      generation: this.#server.status.id ?? serverName,
      hasCompletions: isRecord(completions),
      hasSubscriptions: isRecord(offered) && offered["subscribe"] === true,
    };
    const facts = JSON.stringify([options.generation, options.hasCompletions, options.hasSubscriptions]);
    const round = { facts, serverName };
    const prompts = makeAll("prompt", "name", lists.prompts, this.#prompts, (raw) => remotePrompt(raw, options), round);
    const resources = makeAll("resource", "uri", lists.resources, this.#resources, (raw) => remoteResource(raw, options), round);
    const templates = makeAll(
      "resource template",
      "uriTemplate",
      lists.resourceTemplates,
      this.#templates,
      (raw) => remoteResourceTemplate(raw, options),
      round,
    );
    return {
      offers: { prompts: prompts.made, resources: resources.made, resourceTemplates: templates.made },
      diagnostics: [...prompts.diagnostics, ...resources.diagnostics, ...templates.diagnostics],
    };
  }
}

/** What came of a definition: the thing, or why there is none. */
type Attempt<T> = { readonly value: T } | { readonly fault: string };

const maxShown = 5;

function makeAll<T>(
  what: string,
  key: string,
  list: readonly Json[],
  before: MadeBefore<Attempt<T>>,
  make: (raw: Json) => T | undefined,
  { facts, serverName }: { readonly facts: string; readonly serverName: string },
): { readonly made: readonly T[]; readonly diagnostics: readonly Diagnostic[] } {
  const made: T[] = [];
  const faults: string[] = [];
  const hiding: string[] = [];
  const taken = new Set<string>();
  for (const raw of list) {
    const id = raw[key];
    if (typeof id !== "string" || id === "") faults.push(`one has no ${key}`);
    else if (taken.has(id)) faults.push(`${exactJson(id.slice(0, 80))} is there twice, and the first is used`);
    else {
      taken.add(id);
      if (hasHiddenText(raw)) hiding.push(exactJson(id.slice(0, 80)));
      const attempt = before.take(id, raw, facts, () => attemptTo(make, raw));
      if ("value" in attempt) made.push(attempt.value);
      else faults.push(attempt.fault);
    }
  }
  before.endRound();
  return {
    made,
    diagnostics: [
      ...(faults.length === 0 ? [] : [diagnose(what, faults, serverName)]),
      ...(hiding.length === 0 ? [] : [diagnoseHidden(what, hiding, serverName)]),
    ],
  };
}

/** In what is shown of it: its name, title and description, and those of its arguments. */
function hasHiddenText(raw: Json): boolean {
  const args = Array.isArray(raw["arguments"]) ? raw["arguments"].filter(isRecord) : [];
  return [raw, ...args].some((shown) =>
    [shown["name"], shown["title"], shown["description"]].some((text) => typeof text === "string" && findHidden(text) !== undefined),
  );
}

function diagnoseHidden(what: string, hiding: readonly string[], source: string): Diagnostic {
  const shown = hiding.slice(0, maxShown).join(", ");
  const more = hiding.length > maxShown ? ` and ${hiding.length - maxShown} more` : "";
  const message = `MCP server "${source}": texts of the ${what} ${shown}${more} have hidden characters. People do not see these, so they are taken out. The server's author must delete them.`;
  return { severity: "warning", code: "MCP_TEXT_HIDDEN", source, message };
}

function attemptTo<T>(make: (raw: Json) => T | undefined, raw: Json): Attempt<T> {
  try {
    const value = make(raw);
    return value === undefined ? { fault: "one has no name or address" } : { value };
  } catch (error) {
    if (!(error instanceof HostError)) throw error;
    return { fault: error.message };
  }
}

function diagnose(what: string, faults: readonly string[], source: string): Diagnostic {
  const shown = faults.slice(0, maxShown).join("; ");
  const more = faults.length > maxShown ? `; and ${faults.length - maxShown} more` : "";
  const message = `MCP server "${source}": not every ${what} of it can be offered: ${shown}${more}. Its author must correct that.`;
  return { severity: "warning", code: `MCP_${what.toUpperCase().replace(" ", "_")}_INVALID`, source, message };
}
