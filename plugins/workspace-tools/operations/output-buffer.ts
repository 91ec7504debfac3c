/** What a command wrote and nobody has read: its beginning and its end, when it is more than is kept. */
export class OutputBuffer {
  readonly #half: number;
  #head = "";
  #tail: string[] = [];
  #tailChars = 0;
  #dropped = 0;

  /** `max`: how many characters are kept. */
  constructor(max: number) {
    this.#half = Math.floor(max / 2);
  }

  get isEmpty(): boolean {
    return this.#head === "";
  }

  add(text: string): void {
    const room = this.#half - this.#head.length;
    if (room > 0) this.#head += text.slice(0, room);
    if (text.length > room) this.#addToTail(text.slice(Math.max(0, room)));
  }

  /** Gives what is there, and forgets it. */
  take(): string {
    this.#cutTail();
    const cut = this.#dropped === 0 ? "" : `\n[${this.#dropped} characters of output omitted.]\n`;
    const text = this.#head + cut + this.#tail.join("");
    this.#head = "";
    this.#tail = [];
    this.#tailChars = 0;
    this.#dropped = 0;
    return text;
  }

  #addToTail(text: string): void {
    this.#tail.push(text);
    this.#tailChars += text.length;
    // Cut now and then rather than at each chunk: a program may write byte by byte.
    if (this.#tailChars > this.#half * 2 || this.#tail.length > 1024) this.#cutTail();
  }

  #cutTail(): void {
    const text = this.#tail.join("");
    const kept = text.length > this.#half ? text.slice(-this.#half) : text;
    this.#dropped += text.length - kept.length;
    this.#tail = kept === "" ? [] : [kept];
    this.#tailChars = kept.length;
  }
}
