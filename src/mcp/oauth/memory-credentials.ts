import { waitFor } from "../../base/wait-for.ts";
import { type CredentialStore, type Credentials, latestFirst, type ServerKey } from "./credentials.ts";

/** Credentials that end with the program. */
export function createMemoryCredentials(): CredentialStore {
  const kept = new Map<string, Map<string, Credentials>>();
  const turns = new Map<string, Promise<unknown>>();
  return {
    async list(server) {
      return latestFirst([...(kept.get(keyOf(server))?.values() ?? [])]);
    },
    async exclusively(server, issuer, signal, work) {
      const key = `${keyOf(server)}\n${issuer}`;
      const before = turns.get(key) ?? Promise.resolve();
      const turn = waitFor(before, { signal }).then(() => {
        signal.throwIfAborted();
        return work(entryOf(kept, keyOf(server), issuer));
      });
      // Who gives up waiting lets nobody past those who came before.
      const done = Promise.allSettled([before, turn]);
      turns.set(key, done);
      try {
        return await turn;
      } finally {
        void done.then(() => turns.get(key) === done && turns.delete(key));
      }
    },
  };
}

function keyOf({ name, url }: ServerKey): string {
  return JSON.stringify([name, url]);
}

function entryOf(kept: Map<string, Map<string, Credentials>>, key: string, issuer: string) {
  return {
    current: kept.get(key)?.get(issuer),
    async save(next: Credentials | undefined) {
      const ofServer = kept.get(key) ?? new Map<string, Credentials>();
      kept.set(key, ofServer);
      if (next === undefined) ofServer.delete(issuer);
      else ofServer.set(issuer, next);
    },
  };
}
