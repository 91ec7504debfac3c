import { Client, type ClientContext, type JSONRPCRequest, type Result } from "@modelcontextprotocol/client";
import { packageVersion } from "../../base/package-root.ts";
import { askerOf, type InFlight } from "./request-transport.ts";
import { anything } from "./server-link.ts";
import { requestMethods, type ServerRequests } from "./server-requests.ts";

interface TolerantClientParts {
  readonly requests: ServerRequests;
  readonly inFlight: InFlight;
  /** Milliseconds that the server may take to answer which protocol it speaks. */
  readonly probeTimeout: number;
}

type RequestHandler = (request: JSONRPCRequest, context: ClientContext) => Promise<Result>;

/** How many times one request may need input before it fails. */
const maxRounds = 16;

/**
 * The SDK's client, without its checks of what servers request: it rejects a whole form for one keyword that it does not
 * know. `ServerRequests` reads the parameters and the answers instead. Imported when a server is first connected to.
 */
export class TolerantClient extends Client {
  constructor({ requests, inFlight, probeTimeout }: TolerantClientParts) {
    super(
      { name: "skillhost", title: "skillhost", version: packageVersion },
      {
        capabilities: requests.capabilities,
        versionNegotiation: { mode: "auto", probe: { timeoutMs: probeTimeout } },
        inputRequired: { maxRounds },
        // Results are passed on as they came; the SDK's validator would reject a valid one because of a faulty schema.
        jsonSchemaValidator: { getValidator: () => (data) => ({ valid: true, data: data as never, errorMessage: undefined }) },
      },
    );
    for (const method of requestMethods) {
      if (!requests.offers(method)) continue;
      this.setRequestHandler(method, { params: anything }, (params, { mcpReq }) => {
        // In the stateless protocol requests come in the answer to a request of ours, each under a key.
        if (this.getProtocolEra() !== "modern") return requests.answer(method, params, inFlight.asker());
        const { current } = inFlight;
        return requests.answer(method, params, current === undefined ? { kind: "none" } : askerOf(current), String(mcpReq.id));
      });
    }
  }

  protected override _wrapHandler(_method: string, handler: RequestHandler): RequestHandler {
    return handler;
  }
}
