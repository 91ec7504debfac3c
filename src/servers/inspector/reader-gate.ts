import { randomBytes } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createTokenCheck } from "../../io/net/connection-gate.ts";
import { createHttpGuard } from "../http/http-guard.ts";

/** Who may read a feed and send requests: who has the token, or the cookie that was given for it. */
export class ReaderGate {
  readonly #isToken: (given: string) => boolean;
  readonly #cookie = randomBytes(32).toString("base64url");
  readonly #isCookie: (given: string) => boolean = createTokenCheck(this.#cookie);
  readonly #guard = createHttpGuard({ host: "127.0.0.1", token: undefined, allowedHosts: [], allowedOrigins: [], maxRequests: 20_000 });
  readonly #port: () => number;

  constructor(token: string, port: () => number) {
    this.#isToken = createTokenCheck(token);
    this.#port = port;
  }

  /** Why a request is refused whatever it asks for, before its body is read. `answered`: it was answered already. */
  refusal(request: IncomingMessage, response: ServerResponse): string | "answered" | undefined {
    const { origin } = request.headers;
    // Every port of this machine is one site for a browser, so neither the cookie nor "same-site" shows that it is this page.
    if (origin !== undefined && !this.#origins().includes(origin)) return "Only the inspector's own page may send requests from a browser.";
    const site = request.headers["sec-fetch-site"];
    const isNavigation = request.headers["sec-fetch-mode"] === "navigate" && request.method === "GET";
    if (site !== undefined && site !== "same-origin" && site !== "none" && !isNavigation) return "Another page may not load this.";
    return this.#guard(request, response) ? "answered" : undefined;
  }

  isAdmitted({ headers: { authorization, cookie } }: IncomingMessage): boolean {
    const bearer = /^Bearer +(\S+) *$/i.exec(authorization ?? "")?.[1];
    if (bearer !== undefined) return this.#isToken(bearer);
    const name = this.#cookieName();
    const given = (cookie ?? "").split(/; */).find((pair) => pair.startsWith(`${name}=`));
    return given !== undefined && this.#isCookie(given.slice(name.length + 1));
  }

  /** The header that admits a browser, for the token. Undefined: it is not the token. */
  admit(token: unknown): string | undefined {
    if (typeof token !== "string" || !this.#isToken(token)) return undefined;
    return `${this.#cookieName()}=${this.#cookie}; Path=/; HttpOnly; SameSite=Strict`;
  }

  /** Cookies of one host name are shared by all ports. */
  #cookieName(): string {
    return `skillhost-inspector-${this.#port()}`;
  }

  #origins(): readonly string[] {
    return [`http://127.0.0.1:${this.#port()}`, `http://localhost:${this.#port()}`];
  }
}
