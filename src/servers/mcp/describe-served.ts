import type { Session } from "../../session/session.ts";

const maxNamed = 20;

/** What the model of a client is told of the server. */
export function describeServed(session: Session): string {
  const names = session
    .listSkills()
    .filter(({ hiddenFromModel }) => hiddenFromModel !== true)
    .map(({ name }) => name);
  const named = names.slice(0, maxNamed).join(", ");
  const others = names.length > maxNamed ? ` and ${names.length - maxNamed} more` : "";
  const skills = names.length === 0 ? "" : ` of these skills: ${named}${others}`;
  return `Tools, prompts and resources${skills}. They may change while you are connected.`;
}
