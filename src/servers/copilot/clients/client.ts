import { randomUUID } from "node:crypto";
import type { Logger } from "../../../base/logger.ts";
import { introduction } from "../connection/frames.ts";
import { type AnswerRequest, Wire, type WireStreams } from "../connection/wire.ts";
import { ModelRequests } from "./model-requests.ts";

/** Which of the protocols a client speaks: 2 has calls and permissions as requests to it, 3 as events that it answers. */
export type ProtocolVersion = 2 | 3;

/** What a client is that the server started itself, for one session. */
interface StartedExtension {
  readonly id: string;
  readonly sessionId: string;
  onJoined(): void;
  /** Why it was not let into its session. */
  refusal?: string;
}

/** Requests that a client may send without being allowed to. */
const maxRefusals = 5;

/** A program that is connected. */
export class Client {
  readonly id: string = randomUUID();
  readonly wire: Wire;
  /** Until it says `connect`, it may be one of those that only ping. */
  version: ProtocolVersion | undefined;
  /** Settles when the client was first allowed to call. */
  readonly admitted: Promise<void>;
  #isAdmitted = false;
  #settleAdmitted: () => void = () => {};
  #refusals = 0;
  /** It is an extension. */
  extension: StartedExtension | undefined;
  /** It offers to carry requests to models. */
  carriesModelRequests = false;
  readonly modelRequests: ModelRequests;
  /** Where it keeps the state of its sessions; undefined: here. */
  fileSystem: ClientFileSystem | undefined;

  constructor(streams: WireStreams, answer: (client: Client) => AnswerRequest, log: Logger) {
    this.admitted = new Promise((resolve) => {
      this.#settleAdmitted = resolve;
    });
    this.wire = new Wire(streams, (method, params, signal) => answer(this)(method, params, signal), log);
    this.modelRequests = new ModelRequests(this.wire);
    this.wire.limitInput(introduction);
    void this.wire.closed.then(() => this.modelRequests.close());
  }

  /** Whether it may call. */
  get isAdmitted(): boolean {
    return this.#isAdmitted;
  }

  admit(): void {
    if (this.#isAdmitted) return;
    this.#isAdmitted = true;
    this.wire.limitInput();
    this.#settleAdmitted();
  }

  /** Whether it has used up its tries: not even the right token helps it now. */
  get isLockedOut(): boolean {
    return this.#refusals >= maxRefusals;
  }

  /** Counts a request that was refused for want of the token. The last one ends the line, after its answer. */
  countRefusal(): void {
    this.#refusals++;
    if (this.isLockedOut) setImmediate(() => this.wire.close());
  }
}

/** Where a client keeps the state of its sessions: in a file system of its own, which only it can reach. */
export interface ClientFileSystem {
  /** The folder of a session's state, in each session's own file system. */
  readonly statePath: string;
  readonly initialDirectory: string;
}
