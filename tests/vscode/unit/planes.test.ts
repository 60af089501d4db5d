import assert from 'node:assert/strict';
import { test } from 'node:test';
import { defaultAxes, planeOf, sliceText } from '../../../extension/src/views/planes';

const numbers = Float64Array.from({ length: 24 }, (_, i) => i);

test('a plane of a [2,3,4] tensor along any two axes, in either order', () => {
  assert.deepEqual(planeOf(numbers, [2, 3, 4], [1, 2], [1, 0, 0]), { values: numbers.slice(12), rows: 3, columns: 4 });
  assert.deepEqual([...planeOf(numbers, [2, 3, 4], [0, 1], [0, 0, 3]).values], [3, 7, 11, 15, 19, 23]);
  assert.deepEqual([...planeOf(numbers, [2, 3, 4], [1, 0], [0, 0, 3]).values], [3, 15, 7, 19, 11, 23]);
});

test('vectors are one row, scalars one cell, empty tensors nothing', () => {
  assert.deepEqual(planeOf(numbers.slice(0, 3), [3], defaultAxes(1), [0]), { values: numbers.slice(0, 3), rows: 1, columns: 3 });
  assert.deepEqual(planeOf(numbers.slice(5, 6), [], defaultAxes(0), []), { values: numbers.slice(5, 6), rows: 1, columns: 1 });
  assert.equal(planeOf(new Float64Array(), [0, 4], defaultAxes(2), [0, 0]).values.length, 0);
});

test('a slice leaves the chosen axes whole', () => {
  assert.equal(sliceText([8, 4, 3, 2], [1, 3], [5, 0, 2, 0]), '[5, :, 2, :]');
  assert.equal(sliceText([], [0, 1], []), '[]');
});
