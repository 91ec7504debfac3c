import type { Session } from "../../../session/session.ts";
import type { CopilotServer } from "../server.ts";
import { defaultModel } from "./model-endpoint.ts";

/** The model of a session that named none is found out when it is first needed. */
export async function chooseModel(server: CopilotServer, session: Session): Promise<void> {
  const { turn } = session.config;
  if (turn.chatModel !== undefined || turn.model !== undefined || turn.provider === undefined) return;
  const { firstModel } = await import("./first-model.ts");
  const model = defaultModel(server.options.environment) ?? (await firstModel(turn.provider));
  await session.update({ model });
}
