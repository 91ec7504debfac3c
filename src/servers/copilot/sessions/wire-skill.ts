import { join } from "node:path";
import type { DescribedSkill } from "../../../session/environment.ts";

/** A skill as clients list it. */
export function describeSkill({ name, description, folder, isActive, isUserInvocable }: DescribedSkill): object {
  return {
    name,
    commandName: name,
    description,
    source: "custom",
    userInvocable: isUserInvocable,
    enabled: isActive,
    ...(folder !== undefined && { path: join(folder, "SKILL.md") }),
  };
}
