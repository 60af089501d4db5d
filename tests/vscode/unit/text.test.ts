import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  bytes,
  full,
  inlineSummary,
  measure,
  notFinite,
  short,
  shortestFloat32,
  sparkline,
  statText,
  typeText,
} from '../../../extension/src/text';

test('three significant digits, and words for what is not finite', () => {
  const cases: [Parameters<typeof short>[0], string][] = [
    [0, '0'],
    [0.0213, '0.0213'],
    [1.104, '1.10'],
    [0.00341, '3.41e-3'],
    [12345.6, '12,300'],
    [999.7, '1,000'],
    [1204, '1,204'],
    [-7.25e9, '-7.25e+9'],
    ['NaN', 'NaN'],
    ['-Infinity', '-Inf'],
  ];
  for (const [value, text] of cases) assert.equal(short(value), text);
  assert.equal(full(0.1), '0.1');
  assert.equal(full('Infinity'), '+Inf');
});

test('a float32 is written with the digits that name it', () => {
  for (const text of ['0.1', '-0.4104539', '16777216', '3.4028235e+38', '1e-45'])
    assert.equal(shortestFloat32(Math.fround(Number(text))), String(Number(text)));
});

test('types are written as the program listings write them', () => {
  assert.equal(typeText('float32', [32, 64]), 'f32[32,64]');
  assert.equal(typeText('bfloat16', []), 'bf16[]');
  assert.equal(typeText('complex64', [2]), 'complex64[2]');
});

test('a row says first what is wrong', () => {
  assert.equal(statText({ count: 320, nan: 3, pos_inf: 1, mean: 'NaN' }, false), 'NaN 3, +Inf 1 of 320');
  assert.equal(statText({ count: 6, mean: 0.0213, std: 1.104 }, false), 'μ 0.0213 σ 1.10');
  assert.equal(statText({ count: 6, mean: 3, std: 4 }, true), '|·| 5');
  assert.equal(statText({ count: 1, mean: 0.5, std: 0 }, false), '= 0.500');
  assert.equal(statText({ count: 0 }, false), 'empty');
  assert.equal(notFinite({ count: 5, nan: 0 }), '');
  assert.equal(measure({ count: 2, mean: 3, std: 4 }, false), 3);
});

test('a sparkline is scaled to its own range and marks what is not finite', () => {
  assert.equal(sparkline([0, 1, 2, 3, 4, 5, 6, 7]), '▁▂▃▄▅▆▇█');
  assert.equal(sparkline([5, 5, 5]), '▄▄▄');
  assert.equal(sparkline([1, NaN, 2, Infinity]), '▁×█×');
  assert.equal(sparkline([9, 9, 1, 2], 2), '▁█');
  assert.equal(sparkline([]), '');
});

test('bytes have binary units', () => {
  assert.equal(bytes(1023), '1023 B');
  assert.equal(bytes(1536), '1.5 KiB');
  assert.equal(bytes(64 * 2 ** 20), '64.0 MiB');
});

test('a summary at the end of a line is short but never hides what is not finite', () => {
  assert.equal(inlineSummary('f32[32,64] min -3.2 max 4.1 mean 0.02 std 1.1'), 'f32[32,64] μ 0.02 σ 1.1');
  assert.equal(inlineSummary('f32[8] min -3.2 max +Inf mean NaN std NaN NaN 2 Inf 1'), 'f32[8] μ NaN σ NaN NaN 2 Inf 1');
  assert.equal(inlineSummary('i32[] = 7'), 'i32[] = 7');
});
