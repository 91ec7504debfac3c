import { HostError } from "skillhost";
import { isFields, textOf } from "./wire.ts";

/** Whether a user is signed in to GitHub on the server. */
export interface SignInStatus {
  /** `OK`, `NotSignedIn`, `NotAuthorized`, … */
  readonly status: string;
  readonly user?: string;
}

export function readStatus(answer: unknown): SignInStatus {
  const { status, user } = isFields(answer) ? answer : {};
  return { status: textOf(status), ...(typeof user === "string" && { user }) };
}

/** @throws HostError `LANGUAGE_SERVER_SIGN_IN`. */
export function assertSignedIn({ status }: SignInStatus): void {
  if (status === "OK" || status === "MaybeOK" || status === "AlreadySignedIn") return;
  const advice = "Sign in to GitHub Copilot in an editor on this machine, or set GH_COPILOT_TOKEN for the server.";
  throw new HostError("LANGUAGE_SERVER_SIGN_IN", `No user is signed in to GitHub Copilot (${status || "unknown"}). ${advice}`);
}
