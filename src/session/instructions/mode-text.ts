/** How a session works: with the user, on a plan, or by itself. In the Copilot SDK's words. */
export type AgentMode = "interactive" | "plan" | "autopilot";

/** What the system message says of a mode; nothing of the usual one. */
export const modeInstructions: { readonly [Mode in AgentMode]: string } = {
  interactive: "",
  plan: "You are in plan mode. Work out a plan and change nothing: no file, no setting, nothing elsewhere; only look things up. Ask what only the user can decide. When the plan is complete, call exit_plan_mode if you have that tool, with the whole plan in Markdown; else answer with the plan. Begin to carry it out only when the user has agreed.",
  autopilot:
    "You are in autopilot mode. Go on until the task is done without asking the user: where something is open, decide for what is most sensible and least harmful, and say at the end what you assumed. Stop only when it is done, or when you cannot go on.",
};

/** What the exit_plan_mode tool answers. */
export const planText = {
  approved(action: "exit_only" | "interactive" | "autopilot", feedback: string | undefined): string {
    const next = {
      exit_only: "The user approved the plan and left plan mode, but does not want it carried out now. End your response.",
      interactive: "The user approved the plan. Plan mode is over: carry the plan out now.",
      autopilot: "The user approved the plan. Plan mode is over: carry the plan out now, to the end, without asking.",
    };
    return `${next[action]}${said(feedback)}`;
  },
  refused: (feedback: string | undefined): string =>
    `The user did not approve the plan. You are still in plan mode: revise the plan and put it before the user again.${said(feedback)}`,
  unanswered: "Nobody answered. You are still in plan mode: answer with the plan, and wait for the user.",
} as const;

function said(feedback: string | undefined): string {
  return feedback === undefined || feedback.trim() === "" ? "" : `\n\nThe user says: ${feedback.trim()}`;
}
