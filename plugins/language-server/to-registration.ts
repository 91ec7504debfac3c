import type { ToolDefinition } from "skillhost";
import { type SchemaChange, sanitizeSchema } from "./sanitize-schema.ts";
import { isFields, type ToolRegistration } from "./wire.ts";

/** What is sent for a tool, and what had to be changed for that. It may still have issues. */
export interface PreparedRegistration {
  readonly registration: ToolRegistration;
  readonly changes: readonly SchemaChange[];
}

/**
 * A tool as it is registered. `repair` fills in what the server insists on; otherwise it goes as its author wrote it.
 * `metadata.confirmationMessages` holds the texts with which servers up to 1.4xx ask whoever must confirm a call.
 */
export function toRegistration(definition: ToolDefinition, repair: boolean): PreparedRegistration {
  const { name, title, description, parameters, metadata } = definition;
  const sanitized = parameters === undefined ? undefined : repair ? sanitizeSchema(parameters) : { schema: parameters, changes: [] };
  const changes = [...(sanitized?.changes ?? [])];
  const isDescribed = typeof description === "string" || !repair;
  if (!isDescribed) changes.push({ pointer: "/description", what: "was missing" });
  const confirmationMessages = metadata?.["confirmationMessages"];
  const registration = {
    name,
    ...(isDescribed ? description !== undefined && { description } : { description: title ?? name }),
    ...(sanitized !== undefined && { inputSchema: sanitized.schema }),
    ...(isFields(confirmationMessages) && { confirmationMessages }),
  };
  // Whether it truly is one is for the lint to say.
  return { registration: registration as ToolRegistration, changes };
}
