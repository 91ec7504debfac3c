import { redactText } from "../../base/logger.ts";

/** The end of what a program writes to stderr: however much it writes, only so much is kept. */
export class StderrTail {
  #chunks: Buffer[] = [];
  #length = 0;

  add(text: Buffer | string): void {
    const chunk = typeof text === "string" ? Buffer.from(text) : text;
    // A copy: a slice would keep what it was cut from.
    const part = chunk.length > limit ? Buffer.from(chunk.subarray(-limit)) : chunk;
    this.#chunks.push(part);
    this.#length += part.length;
    while (this.#length - (this.#chunks[0]?.length ?? 0) >= limit) this.#length -= this.#chunks.shift()?.length ?? 0;
  }

  /** Without what looks like a credential. */
  get text(): string {
    return redactText(Buffer.concat(this.#chunks).subarray(-limit).toString("utf8"));
  }

  /** For people: the line that names what went wrong, else the last one that says anything; cut to fit into a message. */
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

/** What stands around it: frames, the quoted source with its marks, properties and closing brackets, the runtime's version. */
const isTrimming =
  /^(?:at |\^|~+$|[{}\])]|\.{3}|Node\.js v\d|Bun v\d|note: run with|goroutine \d|exit status|Traceback |File "|npm (?:error|ERR!)\s*(?:$|A complete log|\S*_logs))|^[\w$]+: .*[,{[]$|^(?:code|errno|syscall|requireStack|\[\w+\]): /;

const limit = 16 * 1024;

/** An error as the runtimes of servers write it: `TypeError: …`, `error: …`, `panic: …`, `thread 'main' panicked at …`. */
const namesError =
  /^(?:Uncaught )?[\w$.]*(?:Error|Exception|Failure)\b|^(?:\[?(?:error|fatal|panic)\]?\b|npm (?:error|ERR!)\s)|\bpanicked at\b|\b(?:error|fatal):\s/i;

const npmCode = /^npm (?:error|ERR!)\s+(?:code|errno|syscall|path)\s/;

const ofNpm = /^npm (?:error|ERR!)\s/;
