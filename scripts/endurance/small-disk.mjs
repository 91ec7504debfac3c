import { spawnSync } from "node:child_process";
import { closeSync, mkdirSync, openSync, rmSync, statfsSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { World } from "./world.mjs";

/** A disk of a few megabytes with skills and sessions on it, which can be filled. Undefined: this system lets nothing be mounted. */
export function openSmallDisk(base, random) {
  const folder = join(base, "disk");
  mkdirSync(folder);
  const mounted = spawnSync("mount", ["-t", "tmpfs", "-o", "size=4m", "none", folder]).status === 0;
  if (!mounted) return undefined;
  return new SmallDisk(folder, random);
}

class SmallDisk {
  #folder;
  #fill;
  #isClosed = false;

  constructor(folder, random) {
    this.#folder = folder;
    this.#fill = join(folder, "fill");
    this.sessions = join(folder, "sessions");
    this.world = new World(random, folder);
    this.world.add("on-disk");
  }

  /** Takes all that is free. */
  fill() {
    const file = openSync(this.#fill, "w");
    const block = Buffer.alloc(4_096, 1);
    try {
      for (;;) writeSync(file, block);
    } catch (error) {
      if (error.code !== "ENOSPC") throw error;
    } finally {
      closeSync(file);
    }
    if (statfsSync(this.#folder).bavail > 0) throw new Error("The disk is not full.");
  }

  /** Saves a tool that is larger than what is free. False: it was cut off, and does not parse. */
  save() {
    try {
      writeFileSync(join(this.world.folder, "on-disk/tools/answer.ts"), `/*${"x".repeat(1_000_000)}*/`);
      return true;
    } catch (error) {
      if (error.code !== "ENOSPC") throw error;
      return false;
    }
  }

  free() {
    rmSync(this.#fill, { force: true });
  }

  close() {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const { status, stderr } = spawnSync("umount", [this.#folder], { encoding: "utf8" });
    if (status !== 0) throw new Error(`The small disk cannot be unmounted: ${stderr}`);
  }
}
