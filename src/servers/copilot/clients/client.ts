import { randomUUID } from "node:crypto";
import type { Logger } from "../../../base/logger.ts";
import { introduction } from "../connection/frames.ts";
import { type AnswerRequest, Wire, type WireStreams } from "../connection/wire.ts";
import { ModelRequests } from "./model-requests.ts";

/** Protocol 2 sends tool calls and permission requests as requests to the client, protocol 3 as events that it answers. */
export type ProtocolVersion = 2 | 3;

/** The extension that a client is, which the server started for one session. */
interface StartedExtension {
  readonly id: string;
  readonly sessionId: string;
  onJoined(): void;
  /** Why it could not join its session. */
  refusal?: string;
}

/** The number of refused requests after which a client is disconnected. */
const maxRefusals = 5;

/** A connected program. */
export class Client {
  readonly id: string = randomUUID();
  readonly wire: Wire;
  /** Unknown until the client sends its first request. */
  version: ProtocolVersion | undefined;
  /** Settles when the client is admitted. */
  readonly admitted: Promise<void>;
  #isAdmitted = false;
  #settleAdmitted: () => void = () => {};
  #refusals = 0;
  /** Undefined: the client is not an extension. */
  extension: StartedExtension | undefined;
  /** Whether it sends model requests for the runtime. */
  carriesModelRequests = false;
  readonly modelRequests: ModelRequests;
  /** Undefined: the state of its sessions is stored on this machine. */
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

  /** Whether it may call methods. */
  get isAdmitted(): boolean {
    return this.#isAdmitted;
  }

  admit(): void {
    if (this.#isAdmitted) return;
    this.#isAdmitted = true;
    this.wire.limitInput();
    this.#settleAdmitted();
  }

  /** Whether it has used up its attempts. Even the right token is refused then. */
  get isLockedOut(): boolean {
    return this.#refusals >= maxRefusals;
  }

  /** Counts a request that was refused without the token. After the answer to the last one, the connection is closed. */
  countRefusal(): void {
    this.#refusals++;
    if (this.isLockedOut) setImmediate(() => this.wire.close());
  }
}

/** A client's own file system, which stores its sessions and can only be accessed through the client. */
export interface ClientFileSystem {
  /** The folder of a session's state. Each session has its own file system. */
  readonly statePath: string;
  readonly initialDirectory: string;
  /** Whether it runs queries on a database of each session. */
  readonly hasDatabases: boolean;
}
