import type { ExecuteContext } from "skillhost";
import { deleteMemory, listMemories, maxMemoryBytes, memoryName, readMemory, writeMemory } from "./_memory-folder.ts";

// The form of tools that language servers use: a schema and a function, which returns text parts or an error.

interface MemoryInput {
  readonly command: "save" | "read" | "list" | "delete";
  readonly path?: string;
  readonly content?: string;
}

type MemoryAnswer = readonly { readonly type: "text"; readonly value: string }[] | { readonly result: "error"; readonly message: string };

export const SCHEMA = {
  name: "memory",
  title: "Memory",
  description:
    "Saves, reads, lists or deletes small named notes that are kept across sessions. Use it to remember decisions, preferences and unfinished work, and to look up notes of earlier sessions.",
  inputSchema: {
    type: "object",
    properties: {
      command: {
        type: "string",
        enum: ["save", "read", "list", "delete"],
        description: "Action: save a memory (replaces one with the same name), read one, list the names of all, or delete one.",
      },
      path: {
        type: "string",
        description:
          "File name of the memory, for example 'notes.md'. Required for save, read and delete. Folders in the name are ignored.",
      },
      content: {
        type: "string",
        description: "Complete text to save. Required for save.",
      },
    },
    required: ["command"],
    additionalProperties: false,
  },
} as const;

/** Mistakes of the caller are returned. Errors of the disk are thrown, so that the model does not see them. */
export async function execute(input: MemoryInput, context: Pick<ExecuteContext, "fileChanged">): Promise<MemoryAnswer> {
  if (input.command === "list") return text(await list());
  if (!input.path) return error("Error: 'path' is required for save/read/delete.");
  const named = memoryName(input.path);
  if (!named.ok) return error(named.reason);
  if (input.command === "save") return save(named.name, input.content, context);
  if (input.command === "read") return found(named.name, await readMemory(named.name));
  if (input.command === "delete")
    return found(named.name, (await deleteMemory(named.name)) ? `Deleted memory '${named.name}'.` : undefined);
  return error(`Unknown command: ${String(input.command)}. Use save, read, list or delete.`);
}

async function list(): Promise<string> {
  const { names, more } = await listMemories();
  if (names.length === 0) return "No memories saved yet.";
  return [...names, ...(more > 0 ? [`… and ${more} more`] : [])].join("\n");
}

async function save(name: string, content: string | undefined, context: Pick<ExecuteContext, "fileChanged">): Promise<MemoryAnswer> {
  if (content === undefined) return error("Error: 'content' is required for save.");
  const size = Buffer.byteLength(content);
  if (size > maxMemoryBytes)
    return error(`Error: a memory is limited to ${maxMemoryBytes} bytes; this one has ${size}. Shorten it or split it into several.`);
  context.fileChanged(await writeMemory(name, content), content);
  return text(`Saved memory '${name}'.`);
}

function found(name: string, value: string | undefined): MemoryAnswer {
  return value === undefined ? error(`Memory '${name}' not found.`) : text(value);
}

function text(value: string): MemoryAnswer {
  return [{ type: "text", value }];
}

function error(message: string): MemoryAnswer {
  return { result: "error", message };
}
