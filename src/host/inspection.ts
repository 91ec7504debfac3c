/**
 * Options of `host.inspect`.
 *
 * @example
 * ```ts
 * const options: InspectorOptions = { port: 4100, readOnly: true };
 * ```
 */
export interface InspectorOptions {
  /** Default: 0, any port that is free. */
  readonly port?: number | undefined;
  /** Refuses requests that call or change something. Questions are shown, but cannot be answered. Default: false. */
  readonly readOnly?: boolean | undefined;
}

/** A page and a feed that are served on this machine. Disposing of it closes the connections of all readers. */
export interface Inspector extends AsyncDisposable {
  /** The address of the page, with the token. A program that has it can call tools. */
  readonly url: string;
  readonly port: number;
  readonly token: string;
}
