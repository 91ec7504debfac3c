/** The media type for the extension of a file name or URI; undefined when the extension is absent or unknown. */
export function mediaTypeOf(path: string): string | undefined {
  const name = path.replace(/[?#].*$/s, "").replace(/^.*[\\/]/s, "");
  const extension = /[^.]\.([A-Za-z0-9]{1,10})$/.exec(name)?.[1]?.toLowerCase();
  return extension === undefined ? undefined : byExtension.get(extension);
}

const byExtension: ReadonlyMap<string, string> = new Map(
  Object.entries({
    "text/markdown": "md markdown",
    "text/plain": "txt text log",
    "text/csv": "csv",
    "text/html": "html htm",
    "text/css": "css",
    "text/javascript": "js mjs cjs jsx",
    "text/typescript": "ts mts cts tsx",
    "text/x-python": "py",
    "application/x-sh": "sh bash",
    "application/json": "json",
    "application/jsonl": "jsonl",
    "application/yaml": "yaml yml",
    "application/toml": "toml",
    "application/xml": "xml xsd",
    "application/sql": "sql",
    "application/pdf": "pdf",
    "application/zip": "zip",
    "application/gzip": "gz",
    "application/wasm": "wasm",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": "pptx",
    "image/svg+xml": "svg",
    "image/png": "png",
    "image/jpeg": "jpg jpeg",
    "image/gif": "gif",
    "image/webp": "webp",
    "image/avif": "avif",
    "audio/mpeg": "mp3",
    "audio/wav": "wav",
    "audio/ogg": "ogg",
    "video/mp4": "mp4",
    "video/webm": "webm",
    "font/ttf": "ttf",
    "font/woff2": "woff2",
  }).flatMap(([type, extensions]) => extensions.split(" ").map((extension) => [extension, type] as const)),
);
