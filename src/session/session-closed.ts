import { HostError } from "../base/errors.ts";

export function sessionClosed(id: string): HostError {
  return new HostError("SESSION_CLOSED", `Session ${id} is closed. Open another one.`);
}
