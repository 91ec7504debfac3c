/**
 * The type of the values that a JSON Schema accepts, for a schema whose type is known in detail, as that of a literal is:
 * `type`, `const`, `enum`, `properties` with `required`, `items`, `anyOf` and `oneOf`. Other keywords do not narrow it. A property with a
 * `default` is always there, since defaults are filled in before a handler runs.
 */
export type JsonSchemaValue<Schema> = Schema extends { readonly const: infer Value }
  ? Value
  : Schema extends { readonly enum: readonly (infer Value)[] }
    ? Value
    : Schema extends { readonly anyOf: readonly (infer Member)[] }
      ? JsonSchemaValue<Member>
      : Schema extends { readonly oneOf: readonly (infer Member)[] }
        ? JsonSchemaValue<Member>
        : Schema extends { readonly type: readonly (infer Type)[] }
          ? ValueOfType<Type, Schema>
          : Schema extends { readonly type: infer Type }
            ? ValueOfType<Type, Schema>
            : unknown;

/** The arguments that a handler gets by a JSON Schema. A schema of which no properties are known gives a record of unknown values. */
export type JsonSchemaArguments<Schema> = Schema extends { readonly properties: infer Properties }
  ? string extends keyof Properties
    ? Record<string, unknown>
    : [keyof Properties] extends [never]
      ? Record<string, unknown>
      : ObjectValue<Properties, Schema>
  : Record<string, unknown>;

type ValueOfType<Type, Schema> = Type extends "string"
  ? string
  : Type extends "number" | "integer"
    ? number
    : Type extends "boolean"
      ? boolean
      : Type extends "null"
        ? null
        : Type extends "array"
          ? Schema extends { readonly items: infer Items }
            ? JsonSchemaValue<Items>[]
            : unknown[]
          : Type extends "object"
            ? JsonSchemaArguments<Schema>
            : unknown;

type ObjectValue<Properties, Schema> = Flat<
  { -readonly [Name in Present<Properties, Schema>]: JsonSchemaValue<Properties[Name]> } & {
    -readonly [Name in Exclude<keyof Properties, Present<Properties, Schema>>]?: JsonSchemaValue<Properties[Name]>;
  }
>;

/** The names of the properties that are never absent. */
type Present<Properties, Schema> = {
  [Name in keyof Properties]: Properties[Name] extends { readonly default: unknown }
    ? Name
    : Schema extends { readonly required: readonly (infer Required)[] }
      ? Name extends Required
        ? Name
        : never
      : never;
}[keyof Properties];

type Flat<Type> = { [Name in keyof Type]: Type[Name] };
