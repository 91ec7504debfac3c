/** A rule of the Agent Skills specification that a skill's name violates. */
export interface NameFault {
  readonly code: string;
  readonly message: string;
}

const maxNameLength = 64;

/**
 * The violations of the Agent Skills specification in a skill's name, as the reference validator checks them: letters of any
 * script, compared after NFKC normalisation, lengths in code points.
 */
export function nameFaults(written: string, directoryName: string): readonly NameFault[] {
  const name = written.trim().normalize("NFKC");
  const length = [...name].length;
  const shown = JSON.stringify(name.slice(0, 80));
  const faults: (NameFault | false)[] = [
    length > maxNameLength &&
      fault("SKILL_NAME_TOO_LONG", `The name has ${length} characters; at most ${maxNameLength} are allowed. Shorten it.`),
    name !== name.toLowerCase() && fault("SKILL_NAME_NOT_LOWERCASE", `The name ${shown} must be lowercase.${nearest(name)}`),
    /^-|-$/.test(name) && fault("SKILL_NAME_HYPHEN_EDGE", `The name ${shown} begins or ends with a hyphen. Remove it.`),
    name.includes("--") && fault("SKILL_NAME_DOUBLE_HYPHEN", `The name ${shown} has two hyphens in a row. Leave one.`),
    !/^[\p{L}\p{N}-]*$/u.test(name) &&
      fault("SKILL_NAME_CHARACTERS", `The name ${shown} must contain only letters, digits and hyphens.${nearest(name)}`),
    name !== directoryName.normalize("NFKC") &&
      fault(
        "SKILL_NAME_MISMATCH",
        `The name ${shown} must equal the name of its directory, ${JSON.stringify(directoryName)}. Rename one of them.`,
      ),
  ];
  return faults.filter((found) => found !== false);
}

function fault(code: string, message: string): NameFault {
  return { code, message };
}

function nearest(name: string): string {
  const slug = name
    .slice(0, maxNameLength)
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((part) => part !== "")
    .join("-");
  return slug === "" ? "" : ` For example "${slug}".`;
}
