import { errorMessage, HostError } from "../../base/errors.ts";
import type { Tool, ToolContext, ToolResult } from "../../tools/tool.ts";
import { failureResult, successResult } from "../../tools/tool-result.ts";
import { sessionCallOf } from "../calls/call-context.ts";
import { createSessionTool } from "../catalog/session-tool.ts";
import type { SessionEvents } from "../history/events.ts";
import { planText } from "../prompt/system-prompt.ts";

interface PlanArguments {
  readonly summary: string;
  readonly plan?: string;
  readonly recommended_action?: PlanAction;
}

/** What may follow a plan. */
type PlanAction = "exit_only" | "interactive" | "autopilot";

const actions: readonly PlanAction[] = ["exit_only", "interactive", "autopilot"];

/** Puts a plan before the user, who may have it carried out. */
export const exitPlanMode: Tool = createSessionTool({
  name: "exit_plan_mode",
  description:
    "Presents your plan to the user for approval. Call it when the plan is complete and you have no open questions. Do not change anything before the user approves.",
  parameters: {
    type: "object",
    properties: {
      summary: { type: "string", description: "The plan in a few lines." },
      plan: { type: "string", description: "The whole plan, in Markdown. Default: the plan that was saved last." },
      recommended_action: {
        type: "string",
        enum: [...actions],
        description:
          "What you recommend: exit_only (the user takes over), interactive (implement it, asking as usual), autopilot (implement it without asking).",
      },
    },
    required: ["summary"],
  },
  handler: async (args: PlanArguments, _invocation: unknown, context: ToolContext): Promise<ToolResult> => {
    const { plan, log } = sessionCallOf(context).session;
    const { summary, recommended_action: recommendedAction = "interactive" } = args;
    try {
      if (args.plan !== undefined) await plan.write(args.plan);
      const planContent = args.plan ?? (await plan.read()) ?? "";
      const answer = await context.ask("exitPlanMode", { summary, planContent, actions, recommendedAction });
      if (!answer.approved) return successResult(planText.refused(answer.feedback));
      const action = actions.find((known) => known === answer.selectedAction) ?? recommendedAction;
      await plan.leave({ mode: action === "autopilot" ? "autopilot" : "interactive", approvesEdits: answer.autoApproveEdits === true });
      return successResult(planText.approved(action, answer.feedback));
    } catch (error) {
      if (error instanceof HostError && error.code === "ASK_UNANSWERED") return failureResult(planText.unanswered);
      log.error("A plan could not be presented to the user.", { error: errorMessage(error) });
      throw error;
    }
  },
});

/** Where a session keeps the plan that it works on. */
export interface PlanStorage {
  /** Undefined: there is none. */
  read(): Promise<string | undefined>;
  /** True: there was none before. */
  write(content: string): Promise<boolean>;
}

/** A plan. Writing it emits an event. */
export function createPlan(
  { read, write }: PlanStorage,
  events: SessionEvents,
): Pick<PlanStorage, "read"> & { write(content: string): Promise<void> } {
  return {
    read,
    async write(content) {
      const isNew = await write(content);
      events.append("session.plan_changed", { operation: isNew ? "create" : "update" });
    },
  };
}
