import { type TSchema, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";

/** The schemas of the Copilot language server 1.539, in the schema library that it uses, so that error messages are the same. */

const property = Type.Object({ type: Type.String(), description: Type.String() });

const inputSchema = Type.Object({
  type: Type.String(),
  properties: Type.Record(Type.String(), property),
  required: Type.Array(Type.String()),
});

const registration = Type.Object({
  name: Type.String(),
  description: Type.String(),
  inputSchema: Type.Optional(inputSchema),
  confirmationMessages: Type.Optional(Type.Object({ title: Type.String(), message: Type.String() })),
});

export const registerParams: TSchema = Type.Object({ tools: Type.Array(registration) });

export const toolResult: TSchema = Type.Object({
  content: Type.Array(Type.Union([Type.Object({ value: Type.String() }), Type.Object({ value: Type.Object({}) })])),
  status: Type.Optional(Type.Union([Type.Literal("success"), Type.Literal("error"), Type.Literal("cancelled")])),
});

export const confirmationResult: TSchema = Type.Object({ result: Type.Union([Type.Literal("accept"), Type.Literal("dismiss")]) });

/** Returns undefined when the value is valid. */
export function faultOf(schema: TSchema, value: unknown): string | undefined {
  if (Value.Check(schema, value)) return undefined;
  const lines = Array.from(Value.Errors(schema, value), ({ path, message }) => `- ${path}: ${message}`);
  return `Schema validation failed with the following errors:\n${lines.join("\n")}`;
}

// biome-ignore lint/suspicious/noExplicitAny: whatever came over the wire
type Json = any;

/** An optional property also accepts null. */
export function withoutNulls(params: Json): Json {
  if (!Array.isArray(params?.tools)) return params;
  const tools = params.tools.map((tool: Json) => {
    return typeof tool === "object" && tool !== null
      ? Object.fromEntries(Object.entries(tool).filter(([key, value]) => !(value === null && key !== "name" && key !== "description")))
      : tool;
  });
  return { ...params, tools };
}
