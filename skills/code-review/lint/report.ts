import type { Finding } from "./finding.ts";
import type { Severity } from "./rule.ts";

export interface Report {
  readonly files: number;
  readonly findings: readonly Finding[];
  readonly counts: Readonly<Record<Severity, number>>;
  /** Findings that were left out to keep the report short; the least severe go first. */
  readonly omitted: number;
  readonly skipped: readonly { readonly file: string; readonly reason: string }[];
  /** There were more files than one run looks at. */
  readonly truncated: boolean;
}

const order: readonly Severity[] = ["error", "warning", "advice"];

/** Puts a report together: the most severe findings within the limit, in the order of the files. */
export function assembleReport(
  files: number,
  findings: readonly Finding[],
  options: { readonly limit: number; readonly skipped: Report["skipped"]; readonly truncated: boolean },
): Report {
  const bySeverity = order.flatMap((severity) => findings.filter((finding) => finding.severity === severity));
  const kept = new Set(bySeverity.slice(0, options.limit));
  return {
    files,
    findings: findings.filter((finding) => kept.has(finding)),
    counts: { error: count(findings, "error"), warning: count(findings, "warning"), advice: count(findings, "advice") },
    omitted: findings.length - kept.size,
    skipped: options.skipped,
    truncated: options.truncated,
  };
}

function count(findings: readonly Finding[], severity: Severity): number {
  return findings.filter((finding) => finding.severity === severity).length;
}

/** The report as text: findings grouped by file, then one line that sums up. */
export function formatReport(report: Report): string {
  const blocks: string[] = [];
  for (const [file, findings] of groupByFile(report.findings)) blocks.push([file, ...findings.map(formatFinding)].join("\n"));
  for (const { file, reason } of report.skipped) blocks.push(`${file}\n  not checked: ${reason}`);
  blocks.push(summary(report));
  return blocks.join("\n\n");
}

function groupByFile(findings: readonly Finding[]): Map<string, Finding[]> {
  const groups = new Map<string, Finding[]>();
  for (const finding of findings) groups.set(finding.file, [...(groups.get(finding.file) ?? []), finding]);
  return groups;
}

function formatFinding({ line, column, severity, rule, message, fix }: Finding): string {
  return `  ${line}:${column}  ${severity}  ${rule}  ${message}\n      fix: ${fix}`;
}

function summary({ files, counts, omitted, truncated }: Report): string {
  const total = counts.error + counts.warning + counts.advice;
  const checked = `${plural(files, "file")} checked`;
  if (total === 0) return `No problems found; ${checked}.${truncated ? tooMany : ""}`;
  const parts = [plural(counts.error, "error"), plural(counts.warning, "warning"), `${counts.advice} advice`].join(", ");
  const left = omitted > 0 ? ` ${plural(omitted, "finding")} not shown: fix these first, or raise maxFindings.` : "";
  return `${plural(total, "problem")} (${parts}); ${checked}.${left}${truncated ? tooMany : ""}`;
}

const tooMany = " There are more files than one run checks: give a narrower path for the rest.";

function plural(number: number, word: string): string {
  return `${number} ${word}${number === 1 ? "" : "s"}`;
}
