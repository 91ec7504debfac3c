import { join } from "node:path";
import type { Diagnostic } from "../base/diagnostic.ts";
import { readFileBytes } from "../io/read-bounded.ts";
import { digestBytes, type FolderDigests, foldedName, signatureFileName } from "./folder-digests.ts";
import type { SignatureStatement } from "./signature-statement.ts";

// Who has changed more reads the number of the rest.
const maxTold = 10;
const maxTextBytes = 1024 * 1024;

/** Says in what a folder differs from what was signed of it; nothing: it does not. */
export function compareFiles(
  folder: string,
  { files: signed }: Pick<SignatureStatement, "files">,
  found: FolderDigests,
  signer: string,
): readonly Diagnostic[] {
  const faults: Diagnostic[] = [...found.problems];
  const fault = (code: string, path: string, message: string): void => {
    faults.push({ severity: "error", code, file: join(folder, path), message });
  };
  for (const [path, { digest, size }] of signed) {
    const now = found.files.get(path);
    if (now === undefined) fault("TRUST_FILE_MISSING", path, missing(path, found));
    else if (now.digest !== digest && isOtherLineEnds(join(folder, path), digest)) fault("TRUST_FILE_CHANGED", path, lineEnds);
    else if (now.digest !== digest)
      fault(
        "TRUST_FILE_CHANGED",
        path,
        `This file has changed since ${signer} signed the skill: it had ${size} bytes, and has ${now.size} others.`,
      );
  }
  for (const path of found.files.keys())
    if (!signed.has(path) && !isInert(path))
      fault(
        "TRUST_FILE_ADDED",
        path,
        `This file is not among those that ${signer} signed: it was added, or it is not packed. Move it out of the skill, or have the skill signed again.`,
      );
  if (faults.length <= maxTold) return faults;
  const more = faults.length - maxTold;
  const message = `${more} more files are not as they were signed.`;
  return [...faults.slice(0, maxTold), { severity: "error", code: "TRUST_FILES_CHANGED", file: join(folder, signatureFileName), message }];
}

/** What git and npm keep in folders for themselves, and never pack. Nothing of a skill reads it. */
export function isInert(path: string): boolean {
  return /(?:^|\/)\.(?:gitignore|gitattributes|npmignore)$/.test(path);
}

const lineEnds =
  'The ends of its lines are not the signed ones; git does that to texts. Write "* -text" into the .gitattributes of the skill before it is signed, and check the files out again.';

/** Whether it would be the signed file with the line ends of another system. */
function isOtherLineEnds(file: string, digest: string): boolean {
  const read = readFileBytes(file, maxTextBytes);
  if (!read.ok) return false;
  const text = Buffer.from(read.bytes).toString("latin1");
  const unix = text.replaceAll("\r\n", "\n");
  return [unix, unix.replaceAll("\n", "\r\n")].some((each) => digestBytes(Buffer.from(each, "latin1")) === digest);
}

function missing(path: string, { files }: FolderDigests): string {
  const folded = foldedName(path);
  const other = [...files.keys()].find((each) => foldedName(each) === folded);
  if (other !== undefined) return `This file was signed by this name, and is called ${JSON.stringify(other)} now. Rename it back.`;
  return "This file was signed and is not there. Bring it back, or have the skill signed again.";
}
