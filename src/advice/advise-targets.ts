import type { Diagnostic, Position } from "../base/diagnostic.ts";
import { lossesOf, maxLosses, type SchemaLoss } from "../models/fit-schema.ts";
import { type SchemaTarget, schemaRules } from "../models/schema-rules.ts";
import type { ToolDefinition } from "../tools/tool.ts";

/** By name of the tool. */
export type ToolPlaces = ReadonlyMap<string, { readonly file: string; readonly start: Position | undefined }>;

/** What the APIs of models do not take of these tools. */
export function adviseTargets(
  tools: readonly { readonly definition: ToolDefinition; readonly file: string | undefined }[],
  places: ToolPlaces,
  targets: readonly SchemaTarget[],
): readonly Diagnostic[] {
  return tools.flatMap(({ definition, file }) => {
    const known = places.get(definition.name);
    const place = known?.file ?? file;
    const where = { ...(place !== undefined && { file: place }), ...(known?.start && { range: { start: known.start } }) };
    if (isComputed(definition)) return [{ ...unknown(definition.name), ...where }];
    return targets.flatMap((target) => adviseTarget(definition, target).map((found) => ({ ...found, ...where })));
  });
}

/** The check without running code puts this in the place of parameters that a library makes. */
function isComputed({ parameters }: ToolDefinition): boolean {
  const comment = parameters?.["$comment"];
  return typeof comment === "string" && comment.startsWith("computed in ") && parameters?.["properties"] === undefined;
}

function unknown(name: string): Diagnostic {
  const message = `The parameters of "${name}" are computed, so no API was compared with them. "skillhost check --run" runs the code and compares them.`;
  return { severity: "info", code: "TARGET_UNKNOWN", message };
}

function adviseTarget(definition: ToolDefinition, target: SchemaTarget): readonly Diagnostic[] {
  const losses = lossesOf(definition, target).filter(({ weight }) => weight !== "none");
  const groups = new Map<string, SchemaLoss[]>();
  for (const loss of losses) {
    const key = `${loss.weight} ${loss.effect}`;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [loss]);
    else group.push(loss);
  }
  return [...groups.values()].map((group) => toDiagnostic(definition.name, target, group, losses.length >= maxLosses));
}

/** A schema may break one rule at thousands of places. */
const maxShown = 3;

function toDiagnostic(name: string, target: SchemaTarget, group: readonly SchemaLoss[], isCut: boolean): Diagnostic {
  const { weight, effect } = group[0]!;
  const more = group.length - maxShown;
  const rest = more > 0 ? `, and ${isCut ? "at least " : ""}${more} more` : "";
  const shown = `${group.slice(0, maxShown).map(describe).join(", ")}${rest}`;
  const { title } = schemaRules[target];
  const said = weight === "refused" ? "refuses" : weight === "loss" ? "does not get" : "gets in another form";
  return {
    severity: weight === "hint" ? "info" : "warning",
    code: weight === "refused" ? "TARGET_REFUSED" : "TARGET_LOSS",
    message: `${title} ${said} of "${name}": ${shown}. ${effect}`,
  };
}

function describe({ path, what }: SchemaLoss): string {
  return path.length === 0
    ? what
    : `${what} at ${path
        .map((step) => step.slice(0, 60))
        .slice(0, 12)
        .join(".")}${path.length > 12 ? "…" : ""}`;
}
