import { redactText } from "../../base/logger.ts";

/** Keeps the last part of a program's stderr, of limited size. */
export class StderrTail {
  #chunks: Buffer[] = [];
  #length = 0;

  add(text: Buffer | string): void {
    const chunk = typeof text === "string" ? Buffer.from(text) : text;
    // A copy, because a slice would keep the whole chunk in memory.
    const part = chunk.length > limit ? Buffer.from(chunk.subarray(-limit)) : chunk;
    this.#chunks.push(part);
    this.#length += part.length;
    while (this.#length - (this.#chunks[0]?.length ?? 0) >= limit) this.#length -= this.#chunks.shift()?.length ?? 0;
  }

  /** The text with likely credentials redacted. */
  get text(): string {
    return redactText(Buffer.concat(this.#chunks).subarray(-limit).toString("utf8"));
  }

  /** For messages: the line that names the error, else the last meaningful line; shortened. */
  get lastLine(): string | undefined {
    const lines = this.text
      .split(/\r?\n/)
      .map((line) => line.trim())
      .filter((line) => line !== "");
    const candidates = lines.filter((line) => !isTrimming.test(line));
    const named = candidates.findLast((line) => namesError.test(line)) ?? candidates.at(-1) ?? lines.at(-1);
    const found =
      named !== undefined && ofNpm.test(named) ? (candidates.find((line) => ofNpm.test(line) && !npmCode.test(line)) ?? named) : named;
    return found?.replace(/\s*\{$/, "").slice(0, 300);
  }
}

/** Lines around the error: frames, the quoted source with its marks, properties and closing brackets, the runtime's version. */
const isTrimming =
  /^(?:at |\^|~+$|[{}\])]|\.{3}|Node\.js v\d|Bun v\d|note: run with|goroutine \d|exit status|Traceback |File "|npm (?:error|ERR!)\s*(?:$|A complete log|\S*_logs))|^[\w$]+: .*[,{[]$|^(?:code|errno|syscall|requireStack|\[\w+\]): /;

const limit = 16 * 1024;

/** Error lines of common runtimes: `TypeError: …`, `error: …`, `panic: …`, `thread 'main' panicked at …`. */
const namesError =
  /^(?:Uncaught )?[\w$.]*(?:Error|Exception|Failure)\b|^(?:\[?(?:error|fatal|panic)\]?\b|npm (?:error|ERR!)\s)|\bpanicked at\b|\b(?:error|fatal):\s/i;

const npmCode = /^npm (?:error|ERR!)\s+(?:code|errno|syscall|path)\s/;

const ofNpm = /^npm (?:error|ERR!)\s/;
