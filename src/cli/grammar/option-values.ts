import { type Command, InvalidArgumentError } from "commander";
import type { HealthPlace } from "../open-health.ts";

/** Adds the options that decide which tools a session has and which calls it allows. */
export function withFilters(command: Command): Command {
  return command
    .option("--allow <rule>", 'rule for calls to allow, such as "lint" or "shell(git status)"; repeatable', collect)
    .option("--deny <rule>", "rule for calls to block; wins over --allow; repeatable", collect)
    .option("--yes", "allow all calls that no rule blocks")
    .option("--available <pattern>", "only these tools; repeatable", collect)
    .option("--excluded <pattern>", "all tools but these; repeatable", collect);
}

/** Collects the values of a repeatable option. */
export function collect(value: string, before: string[] = []): string[] {
  return [...before, value];
}

export function port(value: string): number {
  const number = Number(value);
  if (Number.isInteger(number) && number >= 0 && number <= 65_535) return number;
  throw new InvalidArgumentError("It must be a port number from 0 (any free port) to 65535.");
}

/** `9090`, on this machine alone, or an address like `0.0.0.0:9090` or `[::1]:9090`. */
export function healthPlace(value: string): HealthPlace {
  const [, bracketed, plain, number = ""] = /^(?:(?:\[([0-9a-fA-F:.]+)\]|([^:[\]/\s]+)):)?(\d+)$/.exec(value) ?? [];
  if (number === "") throw new InvalidArgumentError("It must be a port, such as 9090, or an address with one, such as 0.0.0.0:9090.");
  return { host: bracketed ?? plain ?? "127.0.0.1", port: port(number) };
}

export function count(value: string): number {
  const number = Number(value);
  if (Number.isSafeInteger(number) && number > 0) return number;
  throw new InvalidArgumentError("It must be a positive whole number.");
}

export function milliseconds(value: string): number {
  const number = Number(value);
  if (Number.isFinite(number) && number > 0 && number <= 2_147_483_647) return number;
  throw new InvalidArgumentError("It must be a positive number of milliseconds.");
}
