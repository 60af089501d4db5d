// Which lines differ between two texts of a file, and where they are after an edit. No editor API here.

/** Lines of the new text (from 0) that are not in the old one: what a reload put in force. Common ends are cut off, the rest is compared by LCS. */
export function changedLines(before: string, after: string): number[] {
  const a = before.split(/\r?\n/);
  const b = after.split(/\r?\n/);
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const x = a.slice(head, a.length - tail);
  const y = b.slice(head, b.length - tail);
  const inserted = y.map((_, i) => head + i);
  // Quadratic: beyond this the whole middle counts as changed.
  if (x.length * y.length > 4_000_000) return inserted;
  const length = Array.from({ length: x.length + 1 }, () => new Uint32Array(y.length + 1));
  const at = (i: number, j: number): number => length[i]?.[j] ?? 0;
  for (let i = x.length - 1; i >= 0; i--)
    for (let j = y.length - 1; j >= 0; j--) {
      const row = length[i];
      if (row) row[j] = x[i] === y[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
    }
  const kept = new Set<number>();
  for (let i = 0, j = 0; i < x.length && j < y.length; ) {
    if (x[i] === y[j]) {
      kept.add(head + j);
      i++;
      j++;
    } else if (at(i + 1, j) >= at(i, j + 1)) i++;
    else j++;
  }
  return inserted.filter((line) => !kept.has(line));
}

/** Lines of the old text and how many are there instead. */
export interface LineEdit {
  first: number;
  last: number;
  lines: number;
}

/** Where marked lines are after an edit; a line that the edit took in is where the edit begins. */
export function shifted(marked: readonly number[], { first, last, lines }: LineEdit): number[] {
  const by = lines - 1 - (last - first);
  const moved = marked.map((line) => (line <= first ? line : line > last ? line + by : first));
  return [...new Set(moved)];
}

/** [first, last] of each run of lines that follow one another. */
export function blocks(lines: readonly number[]): [number, number][] {
  const found: [number, number][] = [];
  for (const line of lines) {
    const last = found.at(-1);
    if (last && line === last[1] + 1) last[1] = line;
    else found.push([line, line]);
  }
  return found;
}
