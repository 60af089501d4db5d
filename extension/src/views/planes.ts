// Two axes of a tensor as the page holds them: cells, what they stand for, and how to ask for another part. No editor API here.
import type { Plane } from '../protocol';
import type { Window } from './tensor_messages';

/** The plane with its cells as bytes. */
export const inBytes = <T extends Plane | undefined>(plane: T): T =>
  plane && { ...plane, data: typeof plane.data === 'string' ? new Uint8Array(Buffer.from(plane.data, 'base64')) : plane.data };

/** The steps of either sign that the cells of a plane in shades have; bytes above are NaN, infinity and its negative. */
const SHADES = 126;

/** The cells of a plane in bytes, row by row; of one in shades about. */
export function cellsOf({ data, f64, top }: Plane): Float32Array | Float64Array {
  const bytes = data as Uint8Array;
  if (top !== undefined) {
    const sizes = Float64Array.from({ length: 256 }, (_, byte) => ((byte - SHADES) / SHADES) * top);
    sizes.set([NaN, Infinity, -Infinity], 2 * SHADES + 1);
    const cells = new Float64Array(bytes.length);
    for (let i = 0; i < cells.length; i++) cells[i] = sizes[bytes[i] ?? 0] ?? NaN;
    return cells;
  }
  const { buffer } = bytes.slice(); // a copy begins where numbers of eight bytes may
  return f64 ? new Float64Array(buffer) : new Float32Array(buffer);
}

/** The axes first drawn: the last two. A vector is one row, a scalar one cell: axis -1 stands for an axis of length 1. */
export const defaultAxes = (rank: number): [rows: number, columns: number] => [rank - 2 < 0 ? -1 : rank - 2, rank - 1];

export const extentOf = (shape: readonly number[], axis: number): number => (axis < 0 ? 1 : (shape[axis] ?? 1));

/** The tensor's index of the elements in a cell: `[3, 0, 17]`, or `[3, 0:4, 16:20]` where a cell is several. */
export function indexText(plane: Plane, row: number, column: number): string {
  const part = (first: number, size: number, last: number): string => {
    const from = first;
    const to = Math.min(last, from + size);
    return to - from > 1 ? `${from}:${to}` : String(from);
  };
  const texts = plane.indices.map(String);
  const [rows, columns] = plane.axes;
  if (rows >= 0) texts[rows] = part(plane.rows[0] + row * plane.cell[0], plane.cell[0], plane.rows[1]);
  if (columns >= 0) texts[columns] = part(plane.columns[0] + column * plane.cell[1], plane.cell[1], plane.columns[1]);
  return `[${texts.join(', ')}]`;
}

/** What was asked of another shape, fitted to this one: of the same rank (a batch of another size) what was chosen stays. */
export function fitted(window: Window, before: readonly number[] | undefined, shape: readonly number[]): Window {
  const whole = { axes: defaultAxes(shape.length), indices: shape.map(() => 0), most: window.most };
  if (before?.length !== shape.length || !window.axes) return whole;
  const indices = shape.map((n, i) => Math.min(window.indices?.[i] ?? 0, Math.max(0, n - 1)));
  const same = before.every((n, i) => n === shape[i]);
  return same ? { ...window, indices } : { axes: window.axes, indices, most: window.most };
}

/** Another pair of axes: the one chosen before goes where the new one was, if it was drawn. The stretch looked at is the whole again. */
export function withAxis(window: Window, which: 0 | 1, axis: number): Window {
  const axes: [number, number] = [...(window.axes ?? [-1, -1])];
  if (axes[1 - which] === axis) axes[(1 - which) as 0 | 1] = axes[which];
  axes[which] = axis;
  return { axes, indices: window.indices ?? [], most: window.most };
}

/** A stretch `factor` times as long around `middle` (0 to 1 of the present one), inside [0, extent). At least four long. */
export function zoomed([first, last]: [number, number], extent: number, factor: number, middle: number): [number, number] {
  const length = Math.min(extent, Math.max(Math.min(4, extent), Math.round((last - first) * factor)));
  const at = first + (last - first) * middle;
  const from = Math.min(Math.max(0, Math.round(at - length * middle)), extent - length);
  return [from, from + length];
}

/** Two of the newest step that both have kept; undefined where there is none. */
export function newestCommon<T extends { step: number }>(
  own: readonly T[],
  other: readonly T[],
): { own: T; other: T } | undefined {
  const steps = new Map(other.map((k) => [k.step, k]));
  const found = own.filter((k) => steps.has(k.step)).at(-1);
  const twin = found && steps.get(found.step);
  return found && twin && { own: found, other: twin };
}

/** The newest of those kept from before a step; of an unknown step, the newest. */
export const earlier = <T extends { step: number }>(kept: readonly T[], step: number | undefined): T | undefined =>
  kept.filter((k) => step === undefined || k.step < step).at(-1);
