import type { Diagnostic } from "../../base/diagnostic.ts";
import type { Host } from "../../host/host.ts";
import type { ResolvedHostOptions } from "../../host/host-options.ts";
import { createFileApprovals } from "../../trust/file-approvals.ts";

/** What of signatures is wrong and did not keep a skill from loading, and what waits for somebody to approve it. */
export async function checkTrust(
  host: Host,
  { approvalsDirectory }: ResolvedHostOptions,
  timeout: number,
  signal: AbortSignal,
): Promise<readonly Diagnostic[]> {
  const seen = await createFileApprovals({ directory: approvalsDirectory }).list({ kind: "mcp-seen" });
  // Only where something was seen before can anything differ from it.
  const servers = seen.length > 0 ? await host.connectServers({ signal, timeout }) : [];
  const warned = host.skills.flatMap(({ diagnostics }) =>
    diagnostics.filter(({ code, severity }) => code.startsWith("TRUST_") && severity === "warning"),
  );
  return [
    ...warned,
    ...servers.flatMap(({ name, held }) => heldFinding(`MCP server ${JSON.stringify(name)}`, name, held)),
    ...host.skills.flatMap(({ name, held = [] }) => heldFinding(`The skill ${JSON.stringify(name)}`, name, held)),
    ...heldFinding("What programs pushed", "external", await host.heldTools()),
  ];
}

function heldFinding(what: string, source: string, held: readonly { readonly name: string }[]): readonly Diagnostic[] {
  if (held.length === 0) return [];
  const names = held.slice(0, 6).map(({ name }) => JSON.stringify(name));
  const more = held.length > names.length ? ` and ${held.length - names.length} more` : "";
  const message = `${what}: held back until approved: ${names.join(", ")}${more}. "skillhost approve ${source}" shows what changed.`;
  return [{ severity: "warning", code: "DOCTOR_HELD", message, source }];
}
