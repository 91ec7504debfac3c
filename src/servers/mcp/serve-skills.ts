import { type CacheHint, ProtocolError, ProtocolErrorCode, type Server } from "@modelcontextprotocol/server";
import {
  RESOURCES_DIRECTORY_READ_METHOD,
  SKILLS_EXTENSION_ID,
  SKILLS_GET_METHOD,
  SKILLS_LIST_METHOD,
} from "@modelcontextprotocol/server/ext/skills";
import type { Logger } from "../../base/logger.ts";
import { schemaOf } from "./param-schema.ts";
import type { SkillShelf } from "./skill-shelf.ts";
import { guarded } from "./wire-errors.ts";

const pageSize = 100;

/** What a server with `serveSkills` has among its capabilities. */
export const skillsCapability: Readonly<Record<string, { readonly directoryRead: true }>> = {
  [SKILLS_EXTENSION_ID]: { directoryRead: true },
};

/** Has a server answer the methods of the Skills extension (SEP-2640). */
export function serveSkills(server: Server, shelf: SkillShelf, cacheHint: CacheHint | undefined, log: Logger): void {
  const hints = { ...cacheHint };
  server.setRequestHandler(SKILLS_LIST_METHOD, { params: page }, ({ cursor }) =>
    guarded(log, "the list of skills", async () => {
      const { items, ...next } = cut(await shelf.list(), cursor);
      return { skills: items, ...next, ...hints };
    }),
  );
  server.setRequestHandler(SKILLS_GET_METHOD, { params: addressed }, ({ uri }) =>
    guarded(log, `skill ${uri}`, async () => {
      const skill = await shelf.get(uri);
      if (skill === undefined) throw notServed(uri, "is not a skill served here");
      return { skill, ...hints };
    }),
  );
  server.setRequestHandler(RESOURCES_DIRECTORY_READ_METHOD, { params: addressed }, ({ uri, cursor }) =>
    guarded(log, `folder ${uri}`, async () => {
      const children = await shelf.directory(uri);
      if (children === undefined) throw notServed(uri, "is not a folder served here");
      const { items, ...next } = cut(children, cursor);
      return { resources: items, ...next, ...hints };
    }),
  );
}

interface Page<T> {
  readonly items: readonly T[];
  readonly nextCursor?: string;
}

/** Goes on after the address that the cursor names, so that what comes or goes meanwhile repeats nothing. */
function cut<T extends { readonly uri: string }>(all: readonly T[], cursor: string | undefined): Page<T> {
  const after = cursor === undefined ? "" : Buffer.from(cursor, "base64url").toString("utf8");
  if (cursor !== undefined && !/^\w+:\/\//.test(after)) throw new ProtocolError(ProtocolErrorCode.InvalidParams, "Invalid cursor");
  const left = all.filter(({ uri }) => uri > after);
  const items = left.slice(0, pageSize);
  const last = items.at(-1);
  return left.length > pageSize && last !== undefined ? { items, nextCursor: Buffer.from(last.uri).toString("base64url") } : { items };
}

function notServed(uri: string, why: string): ProtocolError {
  return new ProtocolError(ProtocolErrorCode.InvalidParams, `${uri.slice(0, 200)} ${why}.`, { uri });
}

interface PageParams {
  readonly cursor?: string | undefined;
}

interface AddressParams extends PageParams {
  readonly uri: string;
}

const page = schemaOf<PageParams>(({ cursor }) => (isOptionalText(cursor) ? undefined : "cursor must be a text"));
const addressed = schemaOf<AddressParams>(({ uri, cursor }) => {
  if (typeof uri !== "string") return "uri must be a text";
  return isOptionalText(cursor) ? undefined : "cursor must be a text";
});

function isOptionalText(value: unknown): boolean {
  return value === undefined || typeof value === "string";
}
