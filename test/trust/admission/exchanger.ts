import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** `atomic`: the system exchanges two names in one step. `steps`: three renames, between which one of the names is missing. */
export type ExchangeWay = "atomic" | "steps";

export interface ExchangeOptions {
  readonly way: ExchangeWay;
  /** At most so many microseconds pass between two exchanges. */
  readonly pause: number;
}

/** A process that exchanges two names again and again. */
export interface Exchanger {
  /** How often it has exchanged them, in steps of ten. */
  readonly count: number;
  /** Leaves the names as they were, and gives how often it has exchanged them. */
  stop(): Promise<number>;
}

const renameat2: number | undefined =
  process.platform === "linux" ? ({ x64: 316, arm64: 276 } as Record<string, number>)[process.arch] : undefined;

/** Whether this machine can exchange names atomically: it takes renameat2, and perl to call it. */
export function canExchangeAtomically(): boolean {
  if (renameat2 === undefined) return false;
  const folder = mkdtempSync(join(tmpdir(), "skillhost-exchange-"));
  try {
    const [a, b] = [join(folder, "a"), join(folder, "b")];
    for (const file of [a, b]) writeFileSync(file, file);
    return spawnSync("/usr/bin/perl", ["-e", atomic(a, b)]).status === 0 && readFileSync(a, "utf8") === b;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

export function startExchanger(a: string, b: string, { way, pause }: ExchangeOptions): Exchanger {
  const child =
    way === "atomic"
      ? spawn("/usr/bin/perl", ["-e", `${loop(pause)} sub exchange { ${atomic(a, b)} }`], { stdio: ["pipe", "pipe", "inherit"] })
      : spawn(process.execPath, ["-e", steps(a, b, pause)], { stdio: ["pipe", "pipe", "inherit"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  return watchChild(child);
}

function watchChild(child: ChildProcess): Exchanger {
  let count = 0;
  let rest = "";
  child.stdout?.on("data", (chunk: Buffer) => {
    const lines = (rest + chunk.toString()).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) count = Number(line);
  });
  const closed = new Promise<number | null>((resolve) => void child.on("close", resolve));
  return {
    get count() {
      return count;
    },
    async stop() {
      child.stdin?.end();
      const code = await closed;
      if (code !== 0) throw new Error(`The exchanger ended with ${code}.`);
      return count;
    },
  };
}

function atomic(a: string, b: string): string {
  // AT_FDCWD twice, RENAME_EXCHANGE.
  return `my ($a, $b) = (${quote(a)}, ${quote(b)}); syscall(${renameat2}, -100, $a, -100, $b, 2) == 0 or die "$!";`;
}

function loop(pause: number): string {
  return `use IO::Select; $| = 1; my $n = 0; my $in = IO::Select->new(\\*STDIN);
    while (1) {
      exchange(); $n++;
      print "$n\\n" if $n % 10 == 0;
      last if $n % 2 == 0 && $in->can_read(0);
      select(undef, undef, undef, rand(${pause}) / 1e6);
    }
    print "$n\\n";`;
}

function steps(a: string, b: string, pause: number): string {
  return `const { renameSync } = require("node:fs");
    const [a, b] = ${JSON.stringify([a, b])};
    let n = 0, ends = false;
    process.stdin.on("end", () => { ends = true; }).resume();
    const rename = (from, to) => {
      // Windows refuses while another process has a file below the folder open.
      for (let tries = 0; ; tries++) try { return renameSync(from, to); } catch (error) { if (tries > 100) throw error; }
    };
    const exchange = () => {
      rename(a, b + "-between"); rename(b, a); rename(b + "-between", b); n++;
      if (n % 10 === 0) console.log(n);
      if (ends && n % 2 === 0) { console.log(n); process.exit(0); }
      setTimeout(exchange, Math.random() * ${pause / 1000});
    };
    exchange();`;
}

function quote(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}
