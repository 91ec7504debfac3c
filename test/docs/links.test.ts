import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const root = fileURLToPath(new URL("../../", import.meta.url));
const pages = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "examples/README.md", ...pagesIn("docs"), ...pagesIn("docs/api")];

function pagesIn(folder: string): readonly string[] {
  return readdirSync(join(root, folder)).flatMap((name) => (name.endsWith(".md") ? [`${folder}/${name}`] : []));
}

/** A page without its code blocks, which contain no links or headings. */
function prose(path: string): string {
  return readFileSync(path, "utf8").replaceAll(/^(```+)[\s\S]*?^\1$/gm, "");
}

/** The anchors that GitHub generates for the headings of a page. */
function anchorsOf(path: string): ReadonlySet<string> {
  const headings = [...prose(path).matchAll(/^#+ (.+)$/gm)].map(([, text]) => text!);
  return new Set(
    headings.map((text) =>
      text
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
        .replaceAll(" ", "-"),
    ),
  );
}

test.each(pages)("every link in %s has a target", (page) => {
  const path = join(root, page);
  const links = [
    ...prose(path)
      .replaceAll(/`[^`\n]*`/g, "")
      .matchAll(/\]\(([^)\s]+)\)/g),
  ].map(([, target]) => target!);
  const dead = links.filter((target) => !/^https?:/.test(target) && !leadsSomewhere(path, target));
  expect(dead).toEqual([]);
});

function leadsSomewhere(path: string, target: string): boolean {
  const [file = "", anchor] = target.split("#");
  const to = file === "" ? path : join(dirname(path), file);
  if (!existsSync(to) || relative(root, to).startsWith("..")) return false;
  return anchor === undefined || anchorsOf(to).has(anchor);
}

test("the README links to every page", () => {
  const text = readFileSync(join(root, "README.md"), "utf8");
  expect(pagesIn("docs").filter((page) => !text.includes(`](${page})`))).toEqual([]);
});
