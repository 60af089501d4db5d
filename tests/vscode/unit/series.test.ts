import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Snapshot } from '../../../extension/src/protocol';
import { rowText, Series, spokenText } from '../../../extension/src/watch/series';

const snapshot = (step: number, more: Partial<Snapshot> = {}): Snapshot => ({
  watchId: 1,
  step,
  shape: [2, 3],
  dtype: 'float32',
  ...more,
});
const finite = (mean: number): Partial<Snapshot> => ({ stats: { count: 6, mean, std: 1 } });

test('a history keeps the newest samples only', () => {
  const series = new Series(3);
  for (let step = 1; step <= 5; step++) series.add(snapshot(step, finite(step)));
  assert.deepEqual(series.history(), [3, 4, 5]);
  assert.equal(series.samples, 5);
  assert.equal(rowText(series), 'μ 5 σ 1  ▁▅█  f32[2,3]  step 5');
});

test('NaN is a state of its own and its first step is kept', () => {
  const series = new Series(8);
  series.add(snapshot(1, finite(0)));
  series.add(snapshot(7, { stats: { count: 6, nan: 2, mean: 'NaN', std: 'NaN' } }));
  series.add(snapshot(9, { stats: { count: 6, nan: 6, mean: 'NaN', std: 'NaN' } }));
  assert.equal(series.health(), 'notFinite');
  assert.equal(series.firstBadStep, 7);
  assert.match(rowText(series), /^NaN 6 of 6 {2}▄×× {2}f32\[2,3\] {2}step 9/);
  assert.match(spokenText({ key: 'k', expression: 'h', everyN: 1 }, series), /^h, not finite, /);
});

test('a placeholder says why and keeps the statistics it had', () => {
  const series = new Series(8);
  series.add(snapshot(1, finite(2)));
  series.add(snapshot(1204, { placeholder: true, reason: 'copy timed out (100 ms): shape only' }));
  assert.equal(series.health(), 'placeholder');
  assert.equal(rowText(series), 'copy timed out (100 ms): shape only  f32[2,3]  step 1,204');
  assert.equal(series.lastStats?.mean, 2);
  assert.equal(series.placeholders, 1);
});

test('a watch without samples says what it waits for, a refused one why', () => {
  const series = new Series(8);
  assert.equal(rowText(undefined), 'waiting for its line to run');
  series.message = 'no instruction of train.py:12 so far';
  assert.equal(rowText(series), 'no instruction of train.py:12 so far');
  series.error = 'no such name';
  assert.equal(series.health(), 'failed');
  assert.equal(rowText(series), 'no such name');
});
