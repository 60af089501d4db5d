// A plane of exact texts for the clipboard: as a NumPy expression or as tab-separated values. No editor API here.

/** Words of the wire that Python and spreadsheets spell otherwise. */
const NUMPY: Record<string, string> = { NaN: 'np.nan', Inf: 'np.inf', '-Inf': '-np.inf' };

/** NumPy has no bfloat16; float32 holds all of it. Other names are NumPy's own. */
const dtypeOf = (dtype: string): string => (dtype === 'bfloat16' ? 'float32' : dtype === 'bool' ? 'bool_' : dtype);

/** Rows of `width` texts each. */
export function rowsOf(texts: readonly string[], width: number): string[][] {
  const rows: string[][] = [];
  for (let at = 0; at < texts.length; at += Math.max(1, width)) rows.push(texts.slice(at, at + width));
  return rows;
}

/** `np.array([[1.0, np.nan]], dtype=np.float32)`. `rank` 1 is a flat list, 0 a number. */
export function numpyLiteral(texts: readonly string[], width: number, rank: number, dtype: string): string {
  const row = (cells: readonly string[]): string => `[${cells.map((t) => NUMPY[t] ?? t).join(', ')}]`;
  const rows = rowsOf(texts, width).map(row);
  const values =
    rank === 0 ? (NUMPY[texts[0] ?? ''] ?? texts[0] ?? '') : rank === 1 ? (rows[0] ?? '[]') : `[${rows.join(',\n          ')}]`;
  return `np.array(${values}, dtype=np.${dtypeOf(dtype)})`;
}

/** One line a row, as spreadsheets paste it. */
export const tabSeparated = (texts: readonly string[], width: number): string =>
  rowsOf(texts, width)
    .map((cells) => cells.join('\t'))
    .join('\n');
