import type { Json, TestClient } from "./wire-kit.ts";

/** Files of one program, by session and path, as a client of the SDK answers for them. */
export class Disk {
  readonly files = new Map<string, string>();
  isFull = false;

  serve(client: TestClient): void {
    const at = ({ sessionId, path }: Json): string => `${sessionId}:${path}`;
    const missing = { code: "ENOENT", message: "no such file" };
    const full = (work: () => void): object | undefined => {
      if (this.isFull) return { code: "UNKNOWN", message: "disk full" };
      work();
      return undefined;
    };
    client.answers("sessionFs.mkdir", () => null);
    client.answers("sessionFs.exists", (params) => ({ exists: this.files.has(at(params)) }));
    client.answers("sessionFs.readFile", (params) => {
      const content = this.files.get(at(params));
      return content === undefined ? { content: "", error: missing } : { content };
    });
    client.answers("sessionFs.writeFile", (params) => full(() => this.files.set(at(params), params.content)));
    client.answers("sessionFs.appendFile", (params) =>
      full(() => this.files.set(at(params), (this.files.get(at(params)) ?? "") + params.content)),
    );
    client.answers("sessionFs.rename", ({ sessionId, src, dest }) =>
      full(() => {
        this.files.set(`${sessionId}:${dest}`, this.files.get(`${sessionId}:${src}`)!);
        this.files.delete(`${sessionId}:${src}`);
      }),
    );
    client.answers("sessionFs.stat", (params) => {
      const content = this.files.get(at(params));
      const time = "2026-01-01T00:00:00.000Z";
      const stat = { isFile: content !== undefined, isDirectory: false, size: content?.length ?? 0, mtime: time, birthtime: time };
      return content === undefined ? { ...stat, error: missing } : stat;
    });
    client.answers("sessionFs.rm", (params) => {
      for (const name of [...this.files.keys()]) if (name.startsWith(at(params))) this.files.delete(name);
      return null;
    });
    client.answers("sessionFs.readdirWithTypes", (params) => {
      const prefix = `${at(params)}/`;
      const inside = [...this.files.keys()].filter((name) => name.startsWith(prefix)).map((name) => name.slice(prefix.length).split("/"));
      const entries = new Map(inside.map(([name, ...rest]) => [name, { name, type: rest.length > 0 ? "directory" : "file" }]));
      return entries.size === 0 ? { entries: [], error: missing } : { entries: [...entries.values()] };
    });
  }
}
