import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { onTestFinished } from "vitest";
import { silentLogger } from "../../../src/base/logger.ts";
import { createHost } from "../../../src/host/create-host.ts";
import type { Host } from "../../../src/host/host.ts";
import type { HostOptions } from "../../../src/host/host-options.ts";
import type { Inspector, InspectorOptions } from "../../../src/host/inspection.ts";
import { serveHost } from "../../../src/servers/inspector/inspect-host.ts";

import { makeOnce } from "../../compile-once.ts";
import { emptyFolder } from "../../io/temp-folder.ts";
import { type Files, tempFolder } from "../../skills/kit.ts";

const executablePath = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
const root = fileURLToPath(new URL("../../..", import.meta.url));

/** Without a browser these tests are skipped, and say so. */
export const hasBrowser: boolean = existsSync(executablePath);

export async function launchBrowser(): Promise<Browser> {
  // A Chromium that is ended leaves files behind now and then.
  const temp = mkdtempSync(join(tmpdir(), "chromium-"));
  // Its own sandbox does not work for the superuser and in containers.
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"], env: { ...process.env, TMPDIR: temp } });
  const close = browser.close.bind(browser);
  browser.close = async (...options) => {
    await close(...options);
    rmSync(temp, { recursive: true, force: true, maxRetries: 10 });
  };
  return browser;
}

/** The folder of the page, built from the current sources. */
export function builtPage(): string {
  const hash = createHash("sha256");
  const sources = ["package-lock.json", "scripts/bundle-inspector.mjs"].map((file) => join(root, file));
  for (const folder of ["inspector", "src/servers/inspector", "src/base"]) {
    for (const file of readdirSync(join(root, folder), { recursive: true, encoding: "utf8" }).sort()) {
      if (/\.(?:tsx?|css|html)$/.test(file)) sources.push(join(root, folder, file));
    }
  }
  for (const file of sources) hash.update(readFileSync(file));
  return makeOnce(`inspector-${hash.digest("hex").slice(0, 16)}`, (folder) => {
    execFileSync(process.execPath, [join(root, "scripts/bundle-inspector.mjs"), "--out", folder], { stdio: "pipe" });
  });
}

export interface ShownHost {
  readonly host: Host;
  readonly folder: string;
  readonly inspector: Inspector;
  readonly page: Page;
  /** What the browser reported: errors of scripts, and what the content security policy refused. */
  readonly complaints: readonly string[];
  /** Opens a view by its hash: `skills/tool/…`. */
  show(...parts: readonly string[]): Promise<void>;
}

interface ShownOptions {
  readonly host?: HostOptions;
  readonly inspector?: InspectorOptions;
  readonly context?: BrowserContextOptions;
}

/** A host with an inspector whose page is open in a browser. */
export async function openShown(browser: Browser, files: Files, options: ShownOptions = {}): Promise<ShownHost> {
  const folder = tempFolder(files);
  const host = await createHost({
    skillDirectories: [`${folder}/skills`],
    plugins: [],
    watch: false,
    logger: silentLogger,
    workingDirectory: folder,
    approvalsDirectory: emptyFolder(),
    ...options.host,
  });
  const inspector = await serveHost(host, options.inspector ?? {}, builtPage());
  onTestFinished(async () => {
    await inspector[Symbol.asyncDispose]();
    await host.close();
  });
  const { page, complaints } = await openPage(browser, options.context);
  await page.goto(inspector.url);
  await page.getByText("Connected", { exact: true }).waitFor();
  return {
    host,
    folder,
    inspector,
    page,
    complaints,
    show: async (...parts) => {
      await page.evaluate(`location.hash = ${JSON.stringify(`/${parts.map(encodeURIComponent).join("/")}`)}`);
    },
  };
}

export async function openPage(
  browser: Browser,
  options: BrowserContextOptions = {},
): Promise<{ readonly page: Page; readonly complaints: readonly string[] }> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, reducedMotion: "reduce", ...options });
  onTestFinished(() => context.close());
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on("pageerror", (error) => complaints.push(`error: ${error.message}`));
  page.on("console", (message) => {
    if (message.type() === "error") complaints.push(`console: ${message.text()}`);
  });
  page.on("dialog", (dialog) => {
    complaints.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  return { page, complaints };
}

const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** The violations that axe finds in the page as it is, one line each. */
export async function axeViolations(page: Page): Promise<readonly string[]> {
  await page.evaluate(axeSource);
  return page.evaluate(async () => {
    type Found = {
      readonly violations: readonly {
        readonly id: string;
        readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[];
      }[];
    };
    const { violations } = await (globalThis as unknown as { readonly axe: { run(): Promise<Found> } }).axe.run();
    return violations.flatMap(({ id, nodes }) =>
      nodes.map(({ html, failureSummary = "" }) => `${id}: ${html.slice(0, 200)} ${failureSummary.slice(0, 300)}`),
    );
  });
}

/** A tool of JavaScript whose handler returns its arguments as JSON. */
export function echoTool(name: string, parameters: object, more: object = {}): string {
  const definition = JSON.stringify({ description: `Returns what it gets: ${name}.`, parameters, skipPermission: true, ...more });
  return `import { defineTool } from "skillhost";\nexport default defineTool(${JSON.stringify(name)}, { ...${definition}, handler: (args) => JSON.stringify(args) });\n`;
}
