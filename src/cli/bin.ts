#!/usr/bin/env node
// The version is checked before any import: an older Node.js would fail at an import with an unrelated message.
const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
const isSupported = (major === 20 && minor >= 19) || (major === 22 && minor >= 12) || major > 22;
if (isSupported) {
  const { errorMessage, isOutOfFiles } = await import("../base/errors.ts");
  try {
    await import("./start.ts");
  } catch (error) {
    // Node.js opens all imported files at once, so a low limit of open files shows up here first.
    if (!isOutOfFiles(error)) throw error;
    process.stderr.write(`error: skillhost cannot be started: ${errorMessage(error)}.\n`);
    process.exitCode = 1;
  }
} else {
  process.stderr.write(
    `error: skillhost requires Node.js ^20.19.0 || >=22.12.0, but this is ${process.versions.node}. Install a newer Node.js.\n`,
  );
  process.exitCode = 2;
}

export {};
