import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Plane } from '../../../extension/src/protocol';
import {
  cellsOf,
  defaultAxes,
  earlier,
  extentOf,
  fitted,
  inBytes,
  indexText,
  newestCommon,
  withAxis,
  zoomed,
} from '../../../extension/src/views/planes';

const base64 = (numbers: Float32Array | Float64Array): string => Buffer.from(numbers.buffer).toString('base64');
const plane = (more: Partial<Plane> = {}): Plane => ({
  axes: [1, 3],
  indices: [5, 0, 2, 0],
  rows: [0, 8],
  columns: [10, 21],
  height: 2,
  width: 3,
  cell: [4, 4],
  skip: [1, 1],
  f64: false,
  data: '',
  ...more,
});

test('cells are read as what they are, NaN and infinity too', () => {
  assert.deepEqual(
    [...cellsOf(inBytes(plane({ data: base64(new Float32Array([1.5, NaN, -Infinity])) })))],
    [1.5, NaN, -Infinity],
  );
  assert.deepEqual([...cellsOf(inBytes(plane({ f64: true, data: base64(new Float64Array([1e300])) })))], [1e300]);
});

test('cells in shades are about what they were, and what is not finite is told apart', () => {
  const cells = [...cellsOf(plane({ top: 6.3, data: new Uint8Array([0, 126, 252, 127, 253, 254, 255]) }))];
  assert.deepEqual(cells, [-6.3, 0, 6.3, (1 / 126) * 6.3, NaN, Infinity, -Infinity]);
});

test('vectors are one row, scalars one cell', () => {
  assert.deepEqual([defaultAxes(0), defaultAxes(1), defaultAxes(4)], [[-1, -1], [-1, 0], [2, 3]]); // prettier-ignore
  assert.deepEqual([extentOf([4, 7], -1), extentOf([4, 7], 1)], [1, 7]);
});

test('a cell has the index of its elements, cut off at the end', () => {
  assert.equal(indexText(plane(), 1, 0), '[5, 4:8, 2, 10:14]');
  assert.equal(indexText(plane(), 0, 2), '[5, 0:4, 2, 18:21]');
  assert.equal(indexText(plane({ cell: [1, 1] }), 1, 2), '[5, 1, 2, 12]');
  assert.equal(indexText(plane({ axes: [-1, 0], indices: [0], cell: [1, 1] }), 0, 2), '[12]');
  assert.equal(indexText(plane({ axes: [-1, -1], indices: [] }), 0, 0), '[]');
});

test('the newest step that both sides have kept', () => {
  const kept = (...steps: number[]): { step: number }[] => steps.map((step) => ({ step }));
  assert.deepEqual(newestCommon(kept(3, 4, 5, 9), kept(1, 4, 5, 6)), { own: { step: 5 }, other: { step: 5 } });
  assert.equal(newestCommon(kept(8, 9), kept(1, 2)), undefined);
  assert.equal(newestCommon(kept(), kept(1)), undefined);
});

test('what was chosen stays over another batch size, and nothing of it over another rank', () => {
  const chosen = {
    axes: [2, 0] as [number, number],
    indices: [0, 6, 0],
    rows: [2, 4] as [number, number],
    most: [9, 9] as [number, number],
  };
  assert.deepEqual(fitted(chosen, [8, 7, 6], [8, 7, 6]), chosen);
  assert.deepEqual(fitted(chosen, [8, 7, 6], [4, 5, 6]), { axes: [2, 0], indices: [0, 4, 0], most: [9, 9] });
  assert.deepEqual(fitted(chosen, [8, 7, 6], [4, 5]), { axes: [0, 1], indices: [0, 0], most: [9, 9] });
  assert.deepEqual(fitted({ most: [9, 9] }, undefined, [3]), { axes: [-1, 0], indices: [0], most: [9, 9] });
});

test('choosing the axis of the other side exchanges them; the stretch is the whole again', () => {
  const window = {
    axes: [0, 2] as [number, number],
    indices: [0, 3, 0],
    rows: [1, 2] as [number, number],
    most: [9, 9] as [number, number],
  };
  assert.deepEqual(withAxis(window, 0, 2), { axes: [2, 0], indices: [0, 3, 0], most: [9, 9] });
  assert.deepEqual(withAxis(window, 1, 1).axes, [0, 1]);
});

test('a zoom stays inside and around its middle', () => {
  assert.deepEqual(zoomed([0, 100], 100, 0.5, 0.5), [25, 75]);
  assert.deepEqual(zoomed([0, 100], 100, 0.5, 0), [0, 50]);
  assert.deepEqual(zoomed([60, 100], 100, 2, 1), [20, 100]);
  assert.deepEqual(zoomed([20, 24], 100, 0.5, 0.5), [20, 24]);
  assert.deepEqual(zoomed([0, 3], 3, 0.5, 0.5), [0, 3]);
  assert.deepEqual(zoomed([20, 60], 100, 99, 0.3), [0, 100]);
});

test('the step before is the newest that was kept before', () => {
  const kept = [{ step: 4 }, { step: 7, n: 1 }, { step: 7, n: 2 }, { step: 9 }];
  assert.deepEqual([earlier(kept, 9), earlier(kept, 7), earlier(kept, 4)], [{ step: 7, n: 2 }, { step: 4 }, undefined]); // prettier-ignore
  assert.deepEqual([earlier(kept, undefined), earlier([], 3)], [{ step: 9 }, undefined]);
});
