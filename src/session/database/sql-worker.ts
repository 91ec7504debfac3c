import { parentPort, workerData } from "node:worker_threads";
import { toError } from "../../base/errors.ts";
import { SqlEngine } from "./sql-engine.ts";
import type { SqlReply, SqlRequest } from "./sql-thread.ts";

// The program of the thread that has a session's database. It answers its requests one after another.
const stop = new Int32Array((workerData as { readonly stop: SharedArrayBuffer }).stop);
const loading = SqlEngine.load(() => Atomics.load(stop, 0) !== 0);

parentPort!.on("message", (request: SqlRequest) => {
  void loading
    .then((engine) => answer(engine, request))
    .catch((error: unknown): SqlReply => ({ kind: "failed", message: toError(error).message }))
    .then((reply) => parentPort!.postMessage(reply, reply.kind === "ran" && reply.bytes ? [reply.bytes.buffer as ArrayBuffer] : []));
});

function answer(engine: SqlEngine, request: SqlRequest): SqlReply {
  switch (request.kind) {
    case "open":
      engine.open(request.bytes);
      return { kind: "opened" };
    case "run":
      return { kind: "ran", ...engine.run(request.sql) };
    case "todos":
      return { kind: "todos", todos: engine.readTodos() };
  }
}
