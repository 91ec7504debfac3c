import type { Diagnostic } from "../../base/diagnostic.ts";
import type { Logger } from "../../base/logger.ts";
import type { Asks } from "../../tools/tool.ts";
import type { ServerAuth } from "../oauth/server-auth.ts";
import type { ProtocolEra } from "./connection.ts";
import type { FrameListener } from "./frame-log.ts";

/** What servers may ask for. `deny`: refused, and sampling is not even offered. `ask`: whoever is attached to the session decides. */
export interface ServerRequestPolicy {
  /** Default: `ask`. */
  readonly elicitation?: "deny" | "ask" | undefined;
  /** Default: `deny`. `allow`: as `ask`; who is asked answers without a person. */
  readonly sampling?: "deny" | "ask" | "allow" | undefined;
}

/** Who answers what a server asks outside of any call. Without it such questions are declined. */
export interface ServerAnswers {
  elicitation?(data: Asks["elicitation"]["data"]): Promise<Asks["elicitation"]["answer"]>;
  sampling?(data: Asks["sampling"]["data"]): Promise<Asks["sampling"]["answer"]>;
}

export interface ConnectOptions {
  /** Where relative paths of the configuration start, and the one root that the server is told. */
  readonly workingDirectory: string;
  readonly log: Logger;
  /** Gives up connecting; what was started for it is ended before the promise rejects. Later it has no effect. */
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds for connecting. Default: the configuration's timeout, else 60,000. */
  readonly timeout?: number | undefined;
  /** What an earlier connection found out: `legacy` spares the question, `modern` waits for its answer however long that takes. */
  readonly prior?: { readonly era: ProtocolEra } | undefined;
  /** What a local server writes to stderr, as it arrives, without what looks like a credential. */
  readonly onStderr?: ((text: string) => void) | undefined;
  /** Hears of each message. With the log at `debug` they are logged as well. */
  readonly onFrame?: FrameListener | undefined;
  /** Hears what is wrong with what the server offers and does not keep it from being used. */
  readonly onDiagnostic?: ((diagnostic: Diagnostic) => void) | undefined;
  /** How requests to a remote server are authorized. */
  readonly auth?: ServerAuth | undefined;
  readonly requests?: ServerRequestPolicy | undefined;
  readonly answers?: ServerAnswers | undefined;
  /** Declared to the server as extensions that we speak: identifier → settings. */
  readonly extensions?: Readonly<Record<string, object>> | undefined;
  /** Of one message from the server. Default: 32 MiB. */
  readonly maxMessageBytes?: number | undefined;
}

export const defaultMessageBytes: number = 32 * 1024 * 1024;
export const defaultConnectTimeout = 60_000;
