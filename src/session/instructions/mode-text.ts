/** How a session works: with the user, on a plan, or by itself. In the Copilot SDK's words. */
export type AgentMode = "interactive" | "plan" | "autopilot";

/** What the system message says of a mode; nothing of the usual one. */
export const modeInstructions: { readonly [Mode in AgentMode]: string } = {
  interactive: "",
  plan: "You are in plan mode. Make a plan and change nothing: no file, no setting, no external state; use tools only to gather information. Ask the user about decisions that only the user can make. When the plan is complete, call exit_plan_mode if you have that tool, with the whole plan in Markdown; otherwise reply with the plan. Start the work only after the user has approved the plan.",
  autopilot:
    "You are in autopilot mode. Work until the task is done without asking the user: where something is unclear, choose the most sensible and least harmful option, and state your assumptions at the end. Stop only when the task is done or you cannot make progress.",
};

/** What the exit_plan_mode tool answers. */
export const planText = {
  approved(action: "exit_only" | "interactive" | "autopilot", feedback: string | undefined): string {
    const next = {
      exit_only: "The user approved the plan and left plan mode, but does not want it implemented now. End your response.",
      interactive: "The user approved the plan. Plan mode is over: implement the plan now.",
      autopilot: "The user approved the plan. Plan mode is over: implement the whole plan now without asking.",
    };
    return `${next[action]}${said(feedback)}`;
  },
  refused: (feedback: string | undefined): string =>
    `The user did not approve the plan. You are still in plan mode: revise the plan and present it to the user again.${said(feedback)}`,
  unanswered: "The user did not answer. You are still in plan mode: reply with the plan, and wait for the user.",
} as const;

function said(feedback: string | undefined): string {
  return feedback === undefined || feedback.trim() === "" ? "" : `\n\nThe user says: ${feedback.trim()}`;
}
