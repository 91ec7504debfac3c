import { gzipSync } from "node:zlib";

/** An entry of a tarball, as no honest program writes it. */
export interface TarItem {
  readonly path: string;
  readonly data?: string | Buffer;
  /** `0` file, `1` hard link, `2` symbolic link, `3` device, `5` folder, `6` pipe, `x` extended header. */
  readonly type?: string;
  readonly link?: string;
  /** What the header says, when that is not so. */
  readonly size?: number;
}

/** A gzipped tarball of these entries, written byte by byte. */
export function tarball(items: readonly TarItem[]): Buffer {
  return gzipSync(Buffer.concat([...items.flatMap(entry), Buffer.alloc(1024)]));
}

/** Names longer than a header holds, or that only an extended header can say. */
export function extended(path: string, item: Omit<TarItem, "path">): readonly TarItem[] {
  const field = ` path=${path}\n`;
  let length = Buffer.byteLength(field) + 1;
  while (String(length).length + Buffer.byteLength(field) > length) length++;
  return [
    { path: "PaxHeader/x", type: "x", data: `${length}${field}` },
    { ...item, path: "package/harmless" },
  ];
}

/** The tarball of a package. */
export function packageTarball(manifest: object, files: Readonly<Record<string, string>>): Buffer {
  const all = { "package.json": JSON.stringify(manifest), ...files };
  return tarball(Object.entries(all).map(([path, data]) => ({ path: `package/${path}`, data })));
}

function entry({ path, data = "", type = "0", link = "", size }: TarItem): readonly Buffer[] {
  const body = Buffer.isBuffer(data) ? data : Buffer.from(data);
  const header = Buffer.alloc(512);
  header.write(path, 0, 100, "latin1");
  header.write("0000644\0", 100);
  header.write("0000000\0", 108);
  header.write("0000000\0", 116);
  header.write(`${(size ?? body.length).toString(8).padStart(11, "0")}\0`, 124);
  header.write("00000000000\0", 136);
  header.write("        ", 148);
  header.write(type, 156);
  header.write(link, 157, 100);
  header.write("ustar\x0000", 257);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return [header, body, Buffer.alloc((512 - (body.length % 512)) % 512)];
}
