import { existsSync, readdirSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { packageRoot } from "../../base/package-root.ts";

interface PageFile {
  readonly mimeType: string;
  readonly content: Buffer;
}

const mimeTypes: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".txt": "text/plain; charset=utf-8",
};

const missingPage = `<!doctype html>
<html lang="en">
  <meta charset="utf-8">
  <title>skillhost inspector</title>
  <h1>The page is not built</h1>
  <p>skillhost runs from its sources. Run <code>npm run build</code>, and load this page again. The feed of this address works without it.</p>
</html>
`;

/** The files of the built page by their URL paths. Read once; only these are ever served. */
export function readPageFiles(folder: string = join(packageRoot, "dist/inspector")): ReadonlyMap<string, PageFile> {
  const files = new Map<string, PageFile>();
  if (existsSync(folder)) {
    for (const name of readdirSync(folder)) {
      const mimeType = mimeTypes[extname(name)];
      if (mimeType !== undefined) files.set(`/${name}`, { mimeType, content: readFileSync(join(folder, name)) });
    }
  }
  const index = files.get("/index.html") ?? { mimeType: mimeTypes[".html"]!, content: Buffer.from(missingPage) };
  return new Map([...files, ["/", index]]);
}
