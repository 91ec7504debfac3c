import { randomBytes } from "node:crypto";
import type { ServerResponse } from "node:http";
import type { ServedApp } from "./feed-apps.ts";
import { readPageFiles } from "./page-files.ts";

/** A content that is too long for a message. */
export interface ServedBlob {
  readonly mimeType: string;
  readonly content: string | Buffer;
}

// What a browser shows by itself must not run anything.
const shownTypes = /^(?:image\/(?:png|jpeg|gif|webp|avif)|audio\/[\w.+-]+|video\/(?:mp4|webm))$/;

export function serveBlob({ mimeType, content }: ServedBlob, response: ServerResponse): void {
  const isText = typeof content === "string";
  const isShown = isText || shownTypes.test(mimeType);
  response.setHeader("Content-Security-Policy", "default-src 'none'; sandbox");
  if (!isShown) response.setHeader("Content-Disposition", "attachment");
  const type = isText ? "text/plain; charset=utf-8" : isShown ? mimeType : "application/octet-stream";
  response.writeHead(200, { "Content-Type": type, "Content-Length": Buffer.byteLength(content) }).end(content);
}

/** Serves a page of an MCP server, for a frame of the inspector's page. */
export function serveApp({ html, policy }: ServedApp, response: ServerResponse): void {
  response.setHeader("Content-Security-Policy", policy);
  response.setHeader("X-Frame-Options", "SAMEORIGIN");
  response.writeHead(200, { "Content-Type": "text/html; charset=utf-8", "Content-Length": Buffer.byteLength(html) }).end(html);
}

/** Serves the files of the page. They contain no secrets, so that the page can load before it has the cookie. */
export class PageServer {
  #files: ReturnType<typeof readPageFiles> | undefined;
  readonly #folder: string | undefined;

  constructor(folder: string | undefined) {
    this.#folder = folder;
  }

  /** False: this is not a file of the page. */
  serve(path: string, response: ServerResponse): boolean {
    this.#files ??= readPageFiles(this.#folder);
    const file = this.#files.get(path);
    if (file === undefined) return false;
    const nonce = randomBytes(16).toString("base64");
    response.setHeader("Content-Security-Policy", contentPolicy(nonce));
    const content = file.mimeType.startsWith("text/html") ? file.content.toString("utf8").replaceAll("__NONCE__", nonce) : file.content;
    response.writeHead(200, { "Content-Type": file.mimeType, "Content-Length": Buffer.byteLength(content) }).end(content);
    return true;
  }
}

function contentPolicy(nonce: string): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "connect-src 'self'",
    "img-src 'self' data:",
    "media-src 'self' data:",
    // Pages of MCP servers, which cannot leave their frame.
    "frame-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; ");
}
