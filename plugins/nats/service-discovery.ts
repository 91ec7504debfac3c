import type { Msg, NatsConnection, Subscription } from "@nats-io/transport-node";

/** A service as the programs of NATS list it (`nats micro`), by the protocol of ADR-32. */
export interface ServiceDescription {
  readonly name: string;
  readonly id: string;
  readonly version: string;
  readonly description: string;
  readonly started: Date;
  readonly metadata: Readonly<Record<string, string>>;
  readonly endpoints: () => Iterable<ServiceEndpoint>;
}

export interface ServiceEndpoint {
  readonly name: string;
  readonly subject: string;
  readonly queue: string;
  readonly statistics: EndpointStatistics;
}

/** What has happened at an endpoint. */
export class EndpointStatistics {
  requests = 0;
  errors = 0;
  lastError = "";
  /** Milliseconds. */
  processing = 0;

  count(milliseconds: number, error?: string): void {
    this.requests++;
    this.processing += milliseconds;
    if (error === undefined) return;
    this.errors++;
    this.lastError = error;
  }
}

// Of one answer, well below what a server takes as one message.
const maxAnswer = 500_000;

/** Answers `$SRV.PING`, `$SRV.INFO` and `$SRV.STATS`: of all services, by name, and by name and id. */
export function describeService(connection: NatsConnection, service: ServiceDescription): readonly Subscription[] {
  const { name, id, version, metadata } = service;
  const same = { name, id, version, metadata };
  const answers: Readonly<Record<string, () => object>> = {
    PING: () => ({ type: "io.nats.micro.v1.ping_response", ...same }),
    INFO: () => ({
      type: "io.nats.micro.v1.info_response",
      ...same,
      description: service.description,
      endpoints: Array.from(service.endpoints(), ({ name: endpoint, subject, queue }) => ({ name: endpoint, subject, queue_group: queue })),
    }),
    STATS: () => ({
      type: "io.nats.micro.v1.stats_response",
      ...same,
      started: service.started.toISOString(),
      endpoints: Array.from(service.endpoints(), statisticsOf),
    }),
  };
  return Object.entries(answers).flatMap(([verb, answer]) =>
    ["", `.${name}`, `.${name}.${id}`].map((place) =>
      connection.subscribe(`$SRV.${verb}${place}`, {
        callback: (error, message) => {
          if (error === null) respond(message, answer());
        },
      }),
    ),
  );
}

function respond(message: Msg, answer: object & { readonly endpoints?: readonly unknown[] }): void {
  let text = JSON.stringify(answer);
  // A list that is too long is cut: a longer answer could not be sent.
  for (let count = answer.endpoints?.length ?? 0; text.length > maxAnswer && count > 0; ) {
    count = Math.floor(count / 2);
    text = JSON.stringify({ ...answer, endpoints: answer.endpoints?.slice(0, count) });
  }
  message.respond(text);
}

function statisticsOf({ name, subject, queue, statistics }: ServiceEndpoint): object {
  const { requests, errors, lastError, processing } = statistics;
  return {
    name,
    subject,
    queue_group: queue,
    num_requests: requests,
    num_errors: errors,
    last_error: lastError,
    processing_time: Math.round(processing * 1e6),
    average_processing_time: requests === 0 ? 0 : Math.round((processing * 1e6) / requests),
  };
}
