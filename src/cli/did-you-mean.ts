const most = 3;
const longest = 100;

/** ` Did you mean "a" or "b"?`, or an empty string. */
export function didYouMean(name: string, names: Iterable<string>): string {
  const near = nearestNames(name, names).map((candidate) => `"${candidate}"`);
  if (near.length === 0) return "";
  return ` Did you mean ${near.length === 1 ? near[0] : `${near.slice(0, -1).join(", ")} or ${near.at(-1)}`}?`;
}

/** The likeliest candidates for a misspelled name, best first; at most three. */
function nearestNames(name: string, names: Iterable<string>): readonly string[] {
  const wanted = name.slice(0, longest).toLowerCase();
  const limit = Math.max(1, Math.ceil(wanted.length * 0.4));
  const rated = [...new Set(names)].map((candidate) => ({ candidate, distance: rate(wanted, candidate.slice(0, longest).toLowerCase()) }));
  // Next to a very close candidate, distant ones are noise.
  const best = Math.min(...rated.map(({ distance }) => distance));
  const near = rated
    .filter(({ distance }) => distance <= Math.min(limit, best + 1))
    .sort((a, b) => a.distance - b.distance || (a.candidate < b.candidate ? -1 : 1));
  return near.slice(0, most).map(({ candidate }) => candidate);
}

function rate(wanted: string, candidate: string): number {
  if (wanted.length > 2 && candidate.includes(wanted)) return 1;
  return editDistance(wanted, candidate);
}

// Inserting, deleting, replacing, or swapping two neighbours costs one each.
function editDistance(a: string, b: string): number {
  let before: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1;
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1] ? before[j - 2]! + 1 : Number.POSITIVE_INFINITY;
      next.push(Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + same, swapped));
    }
    before = row;
    row = next;
  }
  return row[b.length]!;
}
