import { describe } from "vitest";
import { FileSessionStore } from "../../src/host/file-session-store.ts";
import { emptyFolder } from "../io/temp-folder.ts";
import { promisesOfStores } from "./session-store-contract.ts";

describe("sessions in files", () => {
  promisesOfStores(async (count) => {
    const sessionsDirectory = emptyFolder();
    return Array.from({ length: count }, () => new FileSessionStore({ sessionsDirectory, storesSessions: true }, () => {}));
  });
});
