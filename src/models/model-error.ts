import { HostError } from "../base/errors.ts";

export type ModelErrorCode =
  /** The endpoint refused the request, for a reason that has no code of its own. */
  | "MODEL_HTTP"
  | "MODEL_RATE_LIMITED"
  /** No connection, no answer in time, or a connection that broke. */
  | "MODEL_UNREACHABLE"
  | "MODEL_ABORTED"
  /** What came is no chat answer, is too large, or stops in the middle. */
  | "MODEL_BAD_ANSWER"
  /** The messages and tools are more than the model takes: make them shorter. */
  | "MODEL_CONTEXT_TOO_LONG"
  /** The key is missing, wrong or not allowed to use the model. */
  | "MODEL_AUTH";

/** How far an answer had come when it broke off. */
export interface PartialReply {
  readonly content: string;
  readonly reasoning: string;
}

export interface ModelErrorDetails {
  /** Whether the same request may succeed later. The tries that `complete` makes of itself are over by then. */
  readonly retryable: boolean;
  /** The HTTP status, where there was one. */
  readonly status?: number;
  /** What the endpoint calls the trouble, and says about it, without secrets. */
  readonly providerCode?: string;
  readonly providerType?: string;
  readonly providerMessage?: string;
  /** The endpoint's own id for the request. */
  readonly requestId?: string;
  /** Milliseconds that the endpoint asks to wait. */
  readonly retryAfter?: number;
  /** How often the request was sent. */
  readonly attempts?: number;
  readonly partial?: PartialReply;
  readonly cause?: Error;
}

/** Why there is no reply from a model. Neither the message nor anything else in it holds the key or a header's secret. */
export class ModelError extends HostError {
  override readonly code: ModelErrorCode;
  readonly details: ModelErrorDetails;

  constructor(code: ModelErrorCode, message: string, details: ModelErrorDetails) {
    super(code, message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = "ModelError";
    this.code = code;
    this.details = details;
  }

  get retryable(): boolean {
    return this.details.retryable;
  }

  get status(): number | undefined {
    return this.details.status;
  }

  /** The same error, knowing what had come before it. */
  withPartial(partial: PartialReply): ModelError {
    return new ModelError(this.code, this.message, { ...this.details, partial });
  }
}
