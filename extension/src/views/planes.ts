// Two-dimensional parts of a tensor that is there as a flat array in index order. No editor API here, so the webview uses it too.

export interface Plane {
  values: Float64Array;
  rows: number;
  columns: number;
}

/** Elements of a shape; 1 for a scalar. */
export const sizeOf = (shape: readonly number[]): number => shape.reduce((n, d) => n * d, 1);

/** The axes first drawn: the last two. A vector is one row, a scalar one cell: axis -1 stands for an axis of length 1. */
export const defaultAxes = (rank: number): [rows: number, columns: number] => [rank - 2 < 0 ? -1 : rank - 2, rank - 1];

/** Rows along `axes[0]`, columns along `axes[1]`, every other axis at its index. */
export function planeOf(
  values: Float64Array,
  shape: readonly number[],
  axes: readonly [number, number],
  indices: readonly number[],
): Plane {
  const strides = shape.map((_, i) => sizeOf(shape.slice(i + 1)));
  const base = shape.reduce((sum, _, i) => (axes.includes(i) ? sum : sum + (indices[i] ?? 0) * (strides[i] ?? 0)), 0);
  const [rows, columns] = axes.map((a) => (a < 0 ? 1 : (shape[a] ?? 1))) as [number, number];
  const [down, across] = axes.map((a) => (a < 0 ? 0 : (strides[a] ?? 0))) as [number, number];
  const plane = Float64Array.from({ length: rows * columns }, (_, i) => {
    const at = base + Math.floor(i / columns) * down + (i % columns) * across;
    return values[at] ?? NaN;
  });
  return { values: plane, rows, columns };
}

/** A NumPy slice that leaves two axes whole and takes one index of each other one: `[3, :, 0, :]`. */
export const sliceText = (shape: readonly number[], axes: readonly number[], indices: readonly number[]): string =>
  `[${shape.map((_, i) => (axes.includes(i) ? ':' : String(indices[i] ?? 0))).join(', ')}]`;
