/** Whether a package says that it runs on this system: `os`, `cpu` and `libc` of its package.json. */
export function fitsMachine(manifest: Readonly<Record<string, unknown>>): boolean {
  return allows(manifest["os"], process.platform) && allows(manifest["cpu"], process.arch) && allows(manifest["libc"], libc());
}

function allows(list: unknown, own: string | undefined): boolean {
  const names = (Array.isArray(list) ? list : typeof list === "string" ? [list] : []).filter((name) => typeof name === "string");
  if (names.length === 0 || names.includes("any")) return true;
  if (own === undefined) return false;
  if (names.includes(`!${own}`)) return false;
  return names.includes(own) || names.every((name) => name.startsWith("!"));
}

function libc(): string | undefined {
  if (process.platform !== "linux") return undefined;
  const { header } = process.report.getReport() as { header?: { glibcVersionRuntime?: string } };
  return header?.glibcVersionRuntime === undefined ? "musl" : "glibc";
}
