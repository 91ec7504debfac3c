import { basename, join } from "node:path";
import { parseFrontMatter } from "../../formats/skills/front-matter.ts";
import { booleanField } from "../../formats/skills/front-matter-fields.ts";
import type { BundleContext } from "./bundle.ts";
import { type BundleFiles, kindOf } from "./bundle-files.ts";
import type { Sources } from "./component-sources.ts";

const maxContextBytes = 262_144;

/** Reads what a bundle puts before every conversation: Gemini's context files, and Cursor's rules that always apply. */
export function loadContext(files: BundleFiles, sources: Sources): readonly BundleContext[] {
  if (sources.dialect === "gemini") return contextFiles(files, sources);
  return sources.dialect === "cursor" ? rules(files, sources) : [];
}

function contextFiles(files: BundleFiles, { given }: Sources): readonly BundleContext[] {
  const usual = files.has("GEMINI.md", "file") ? [join(files.root, "GEMINI.md")] : [];
  const named = given.context?.flatMap((source) => (source.kind === "path" ? (files.find(source.path, source) ?? []) : []));
  return (named ?? usual).flatMap((file) => {
    const text = files.read(file, maxContextBytes);
    return text === undefined || text.trim() === "" ? [] : [{ path: files.nameOf(file), text }];
  });
}

function rules(files: BundleFiles, { given }: Sources): readonly BundleContext[] {
  const usual = files.has("rules", "folder") ? [join(files.root, "rules")] : [];
  const named = given.rules?.flatMap((source) => (source.kind === "path" ? (files.find(source.path, source) ?? []) : []));
  const found = (named ?? usual).flatMap((place) => (kindOf(place) === "file" ? [place] : files.walk(place, /\.(?:mdc|md)$/i, 2)));
  return [...new Set(found)].flatMap((file) => {
    const text = files.read(file, maxContextBytes);
    if (text === undefined) return [];
    const { data, body } = parseFrontMatter(text);
    if (booleanField(data, "alwaysApply", () => {}) === true)
      return body.trim() === "" ? [] : [{ path: files.nameOf(file), text: body.trim() }];
    const message = `The rule ${basename(file)} does not always apply, and by files or when asked for it is not applied here.`;
    files.report({ severity: "info", code: "BUNDLE_RULE", message, file });
    return [];
  });
}
