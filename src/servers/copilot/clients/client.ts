import { randomUUID } from "node:crypto";
import type { Logger } from "../../../base/logger.ts";
import { type AnswerRequest, Wire, type WireStreams } from "../framing/wire.ts";
import type { WireSession } from "../sessions/wire-session.ts";
import type { ClientFileSystem } from "./client-files.ts";
import { ModelRequests } from "./model-requests.ts";

/** Which of the protocols a client speaks: 2 has calls and permissions as requests to it, 3 as events that it answers. */
export type ProtocolVersion = 2 | 3;

/** What a client is that the server started itself, for one session. */
export interface StartedExtension {
  readonly id: string;
  readonly sessionId: string;
  onJoined(): void;
  /** Why it was not let into its session. */
  refusal?: string;
}

/** A program that is connected. */
export class Client {
  readonly id: string = randomUUID();
  readonly wire: Wire;
  /** The sessions that it hears of. */
  readonly sessions: Set<WireSession> = new Set();
  /** Until it says `connect`, it may be one of those that only ping. */
  version: ProtocolVersion | undefined;
  isAuthenticated = false;
  /** It is an extension. */
  extension: StartedExtension | undefined;
  /** It offers to carry requests to models. */
  carriesModelRequests = false;
  readonly modelRequests: ModelRequests;
  /** Where it keeps the state of its sessions; undefined: here. */
  fileSystem: ClientFileSystem | undefined;

  constructor(streams: WireStreams, answer: (client: Client) => AnswerRequest, log: Logger) {
    this.modelRequests = new ModelRequests(this);
    this.wire = new Wire(streams, (method, params, signal) => answer(this)(method, params, signal), log);
  }
}
