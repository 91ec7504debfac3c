import { type Command, InvalidArgumentError, Option } from "commander";
import type { FleetPermissionsOptions } from "../commands/fleet.ts";
import type { PushOptions } from "../commands/push.ts";
import type { WorkerCommandOptions } from "../commands/worker.ts";
import type { FleetCommandOptions } from "../fleet-options.ts";
import type { Choose } from "./choose.ts";
import { collect, count, healthPlace, milliseconds } from "./option-values.ts";

/** The commands for several machines. */
export function addFleetCommands(program: Command, choose: Choose): void {
  addWorkerCommand(program, choose);
  const load = () => import("../commands/push.ts");
  withFleet(
    program
      .command("push")
      .summary("give a skill to all hosts of a fleet")
      .description("Puts the files of a skill into the store of a fleet, and has every host that follows its catalog load them.")
      .argument("<folder>", "folder of the skill"),
  )
    .option("--canary <percent>", "only for this share of the hosts", percent)
    .action((folder: string, options: PushOptions) => choose("push", async (context) => (await load()).push(context, folder, options)));
  withFleet(
    program
      .command("rollback")
      .description("take back the canary of a skill, or its latest version, on all hosts of a fleet")
      .argument("<skill>", "name of the skill"),
  ).action((skill: string, options: FleetCommandOptions) =>
    choose("rollback", async (context) => (await load()).rollback(context, skill, options)),
  );
  withFleet(program.command("status").description("show which host of a fleet runs which version of its skills")).action(
    (options: FleetCommandOptions) => choose("status", async (context) => (await load()).status(context, options)),
  );
  program
    .command("fleet")
    .description("prepare the NATS servers of a fleet")
    .command("permissions")
    .summary("print what each role may do, for the configuration of nats-server")
    .description(
      "Prints the users of a fleet with the subjects that each role needs, as a part of the configuration of nats-server. The server takes their public keys from SKILLHOST_WORKER_NKEY, SKILLHOST_HOST_NKEY and SKILLHOST_PUBLISHER_NKEY.",
    )
    .addOption(new Option("--role <role...>", "only these roles").choices(["worker", "host", "publisher"]))
    .option("--prefix <name>", "first part of every subject (default: skillhost)")
    .option("--sessions", "hosts keep their sessions in the fleet")
    .option("--mcp", "MCP servers of hosts answer for each other")
    .option("--passwords", "names with passwords from SKILLHOST_…_PASSWORD instead of keys")
    .action((options: FleetPermissionsOptions) =>
      choose("fleet permissions", async (context) => (await import("../commands/fleet.ts")).fleetPermissions(context, options)),
    );
}

function percent(value: string): number {
  const number = Number(value);
  if (Number.isFinite(number) && number > 0 && number <= 100) return number;
  throw new InvalidArgumentError("It must be a share in percent, above 0 and up to 100.");
}

function addWorkerCommand(program: Command, choose: Choose): void {
  withFleet(
    program
      .command("worker")
      .summary("serve tools to the hosts of a fleet")
      .description("Serves the tools of the skills to hosts on other machines, over NATS. Those hosts decide which calls are allowed."),
  )
    .option("--follow <folder>", "load the skills of the fleet's catalog into this folder, and serve them, too")
    .option("--name <name>", "name in lists of services (default: skillhost-worker)")
    .option("--max-calls <count>", "calls that run at the same time (default: 256)", count)
    .option("--grace <ms>", "how long running calls may take when the worker is stopped (default: 30000)", milliseconds)
    .option("--health <place>", "answer /livez, /readyz and /metrics at this port, or at this address such as 0.0.0.0:9090", healthPlace)
    .option("--available <pattern>", "only these tools; repeatable", collect)
    .option("--excluded <pattern>", "all tools but these; repeatable", collect)
    .action((options: WorkerCommandOptions) =>
      choose("worker", async (context) => (await import("../commands/worker.ts")).worker(context, options), {}),
    );
}

/** Adds the options that decide which servers a fleet meets at, and as whom. */
function withFleet(command: Command): Command {
  return command
    .option("--nats <address>", "NATS server, such as nats://127.0.0.1:4222; repeatable (default: NATS_URL)", collect)
    .option("--prefix <name>", "first part of every subject (default: skillhost)")
    .option("--credentials <file>", "credentials file with JWT and key (default: NATS_CREDS)")
    .option("--nkey <file>", "file with the seed of an NKey (default: NATS_NKEY)")
    .option("--tls-ca <file>", "certificates of the authorities that sign the servers' certificates")
    .option("--tls-cert <file>", "own certificate")
    .option("--tls-key <file>", "key of the own certificate")
    .option("--no-tls", "without TLS to servers on other machines, too");
}
