import { type Alias, isAlias, isCollection, isMap, isNode, isScalar, type Node, type Pair, visit, type YAMLMap } from "yaml";
import type { Severity } from "../../base/diagnostic.ts";
import { parseYaml } from "./parse-yaml.ts";

export type LintAdd = (severity: Severity, code: string, message: string, offset: number) => void;

/** A top-level entry of strict front matter. `value` is text for every scalar, whatever it looks like. */
export interface StrictField {
  readonly key: string;
  readonly offset: number;
  readonly value: string | readonly StrictValue[] | ReadonlyMap<string, StrictValue>;
}

/** The text of a scalar; absent for a list or mapping. */
type StrictValue = string | undefined;

/**
 * Reads YAML by the rules of StrictYAML, which the Agent Skills reference validator uses: no flow collections, anchors,
 * aliases, tags or duplicate keys, and every scalar is text. Absent when it is no mapping at all.
 */
export function lintStrictYaml(source: string, add: LintAdd): readonly StrictField[] | undefined {
  const document = parseYaml(source, "failsafe");
  if ("message" in document) {
    const message = `The front matter is not YAML: ${document.message}. Put quotes around text that holds ": " or begins with a sign.`;
    add("error", "SKILL_YAML_INVALID", message, document.offset);
    return undefined;
  }
  visit(document, { Node: (_key, node) => lintNode(node, add) });
  if (isMap(document.contents)) return toFields(document.contents as YAMLMap<Node, Node | null>);
  add("error", "FRONT_MATTER_NOT_MAP", "The front matter must be a list of `key: value` lines.", 0);
  return undefined;
}

function lintNode(node: Alias | Node, add: LintAdd): void {
  const offset = offsetOf(node);
  const found = (code: string, message: string): void => add("error", code, message, offset);
  if (isAlias(node)) {
    found("SKILL_YAML_ALIAS", "Aliases are not allowed in front matter. Put quotes around text that begins with *.");
    return;
  }
  if (node.anchor !== undefined)
    found("SKILL_YAML_ANCHOR", "Anchors are not allowed in front matter. Put quotes around text that begins with &.");
  if (hasTag(node)) found("SKILL_YAML_TAG", "Tags are not allowed in front matter. Put quotes around text that begins with !.");
  if (isMap(node)) lintDuplicates(node as YAMLMap<Node, Node | null>, add);
  if (!isCollection(node) || !node.flow) return;
  if (isMap(node))
    found("SKILL_YAML_FLOW_MAP", "Mappings in { } are not allowed in front matter. Write one indented `key: value` line for each entry.");
  else
    found(
      "SKILL_YAML_FLOW_LIST",
      "Lists in [ ] are not allowed in front matter. Write one `- item` line for each item, or put quotes around text.",
    );
}

// A collection always has a tag, a scalar only where one is written.
function hasTag(node: Node): boolean {
  const { tag } = node as { tag?: string };
  return tag !== undefined && !(isCollection(node) && /^tag:yaml\.org,2002:(?:map|seq)$/.test(tag));
}

function lintDuplicates(map: YAMLMap<Node, Node | null>, add: LintAdd): void {
  const seen = new Set<string>();
  for (const { key } of map.items) {
    const name = scalarText(key);
    if (seen.has(name)) add("error", "FRONT_MATTER_DUPLICATE_KEY", `The key "${name}" is there twice. Remove one of them.`, offsetOf(key));
    seen.add(name);
  }
}

function toFields(map: YAMLMap<Node, Node | null>): readonly StrictField[] {
  return map.items.map(({ key, value }: Pair<Node, Node | null>) => ({
    key: scalarText(key),
    offset: offsetOf(key),
    value: toFieldValue(value),
  }));
}

function toFieldValue(node: Node | null): StrictField["value"] {
  if (isMap(node)) return new Map((node as YAMLMap<Node, Node | null>).items.map(({ key, value }) => [scalarText(key), toEntry(value)]));
  return isCollection(node) ? node.items.map((item) => toEntry(item as Node | null)) : scalarText(node);
}

function toEntry(node: Node | null): StrictValue {
  return isCollection(node) ? undefined : scalarText(node);
}

function scalarText(node: Node | null): string {
  return isScalar(node) ? String(node.value ?? "") : "";
}

function offsetOf(node: unknown): number {
  return isNode(node) ? (node.range?.[0] ?? 0) : 0;
}
