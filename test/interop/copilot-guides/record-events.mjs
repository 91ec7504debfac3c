// Loaded before a program: appends every event that the SDK receives to the file that GUIDE_EVENTS names.
import { appendFileSync } from "node:fs";
import { CopilotSession } from "@github/copilot-sdk";

const dispatch = CopilotSession.prototype._dispatchEvent;
CopilotSession.prototype._dispatchEvent = function (event) {
  appendFileSync(process.env["GUIDE_EVENTS"], `${JSON.stringify({ session: this.sessionId, event })}\n`);
  return dispatch.call(this, event);
};
