import type { HostModules } from "../src/io/module-loader/host-modules.ts";
import type { ModuleLoader } from "../src/io/module-loader/module-loader.ts";
import type { Scope } from "../src/io/scope.ts";

export interface Feature {
  readonly name: string;
  readonly entry?: string;
  readonly files: Readonly<Record<string, string>>;
  readonly expect: unknown;
}
export interface ReloadCase {
  readonly packageType: "module" | "commonjs";
  readonly place: "inside" | "outside";
  readonly entry: string;
  readonly helper: string;
}
export const features: readonly Feature[];
export const packages: Readonly<Record<string, string>>;
export const helperTypes: readonly string[];
export const entryTypes: readonly string[];
export const operations: readonly string[];
export function reloadCases(): ReloadCase[];
export function makeTree(files: Readonly<Record<string, string>>, root?: string): string;
export function createHostModules(): HostModules;
export function runFeature(feature: Feature, loader: ModuleLoader, scope: Scope): Promise<string | undefined>;
export function runReload(
  reload: ReloadCase,
  loader: ModuleLoader,
  scope: Scope,
  options?: { sampleFreed?: boolean },
): Promise<Record<string, string>>;
