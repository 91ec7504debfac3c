import type { ConfigPlace, DialectRules } from "./mcp-dialects.ts";

/** The target of a placeholder. The user is asked for `input` and `setting`. */
export type VariableReference =
  | { readonly kind: "environment" | "input" | "setting"; readonly name: string }
  | { readonly kind: "place"; readonly name: ConfigPlace };

/** The value of a placeholder, or undefined when it has none. */
export type VariableLookup = (reference: VariableReference) => string | undefined;

export interface VariableValues {
  readonly environment?: Readonly<Record<string, string | undefined>>;
  readonly places?: Readonly<Partial<Record<ConfigPlace, string>>>;
  readonly inputs?: Readonly<Record<string, string>>;
  readonly settings?: Readonly<Record<string, string>>;
}

/** A lookup in the known values. */
export function createVariableLookup({ environment = {}, places = {}, inputs = {}, settings = {} }: VariableValues): VariableLookup {
  const tables = { environment, place: places, input: inputs, setting: settings };
  return ({ kind, name }) => {
    const table: Readonly<Record<string, string | undefined>> = tables[kind];
    return Object.hasOwn(table, name) ? table[name] : undefined;
  };
}

export interface UnresolvedVariable {
  readonly reference: VariableReference;
  /** The placeholder as written. */
  readonly placeholder: string;
}

/** A text after one expansion of its variables. Inserted values are not expanded again. */
export interface Expanded {
  readonly text: string;
  /** Variables without a value; their placeholders stay in the text. */
  readonly unresolved: readonly UnresolvedVariable[];
  /** Placeholders that this dialect does not define; they stay in the text too. */
  readonly undefinedForms: readonly string[];
}

/** Linux does not pass longer values to a program, and they are not valid URLs or headers either. */
export const maxValueLength: number = 131_072;

const placeholder = /\$\{\{\s*([^{}]{1,200}?)\s*\}\}|\$\{([^}]{1,400})\}|\$([A-Za-z_]\w{0,200})/g;

/** Expands the variables that a dialect defines. Never throws; `unresolved` and `undefinedForms` contain no values. */
export function expandVariables(text: string, rules: DialectRules, lookup: VariableLookup): Expanded {
  if (!text.includes("$")) return { text, unresolved: [], undefinedForms: [] };
  const unresolved: UnresolvedVariable[] = [];
  const undefinedForms: string[] = [];
  let length = 0;
  const filled = text.replace(placeholder, (whole, action: string | undefined, inner: string | undefined, bare: string | undefined) => {
    // A text that consists of placeholders with long values could expand to gigabytes.
    if (length > maxValueLength) return whole;
    const found = classify(rules, action, inner, bare);
    if (found === undefined) {
      if (bare === undefined || isWholeReference(text, whole)) undefinedForms.push(whole);
      return whole;
    }
    const value = lookUp(found, lookup);
    if (value === undefined) unresolved.push({ reference: found.reference, placeholder: whole });
    length += value?.length ?? 0;
    return value ?? whole;
  });
  return { text: filled, unresolved, undefinedForms };
}

interface Classified {
  readonly reference: VariableReference;
  /** An environment variable with the name of an unknown place may provide it. */
  readonly instead?: VariableReference;
  readonly fallback?: string;
}

function classify(
  rules: DialectRules,
  action: string | undefined,
  inner: string | undefined,
  bare: string | undefined,
): Classified | undefined {
  if (inner !== undefined) {
    const environment = environmentOf(rules, inner);
    if (Object.hasOwn(rules.places, inner)) {
      const reference: VariableReference = { kind: "place", name: rules.places[inner]! };
      return environment === undefined ? { reference } : { reference, instead: environment.reference };
    }
    for (const [prefix, kind] of Object.entries(rules.asks))
      if (inner.startsWith(prefix) && inner.length > prefix.length) return { reference: { kind, name: inner.slice(prefix.length) } };
    return environment;
  }
  const name = bare ?? /^(?:secrets|vars|env)\.([A-Za-z_]\w*)$/.exec(action ?? "")?.[1];
  const isDefined = rules.environment.includes(bare === undefined ? "actions" : "bare");
  return isDefined && name !== undefined ? { reference: { kind: "environment", name } } : undefined;
}

function environmentOf(rules: DialectRules, inner: string): Classified | undefined {
  const match = /^(env:)?([A-Za-z_]\w*)(?::-([\s\S]*))?$/.exec(inner);
  if (match === null) return undefined;
  const [, prefix, name, fallback] = match;
  if (!rules.environment.includes(prefix === undefined ? "braces" : "prefix")) return undefined;
  if (fallback !== undefined && !rules.defaults) return undefined;
  return { reference: { kind: "environment", name: name! }, ...(fallback !== undefined && { fallback }) };
}

function lookUp({ reference, instead, fallback }: Classified, lookup: VariableLookup): string | undefined {
  return lookup(reference) ?? (instead === undefined ? undefined : lookup(instead)) ?? fallback;
}

// A dollar sign before a word is usually literal; `$WORD` alone, or after a scheme such as Bearer, is probably meant as a
// variable.
function isWholeReference(text: string, whole: string): boolean {
  return /^\$[A-Z_][A-Z0-9_]*$/.test(whole) && (text === whole || text.endsWith(` ${whole}`));
}
