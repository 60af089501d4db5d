import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decode } from '../../../extension/src/views/decode';

const base64 = (bytes: number[] | ArrayBuffer): string => Buffer.from(bytes as ArrayBuffer).toString('base64');

test('each dtype is read as what it is', () => {
  assert.deepEqual([...(decode(base64(new Float32Array([1.5, -2, Infinity]).buffer), 'float32') ?? [])], [1.5, -2, Infinity]);
  assert.deepEqual(
    [...(decode(base64([0x00, 0x3c, 0x00, 0xc0, 0x00, 0x7c, 0x01, 0x00, 0x00, 0x7e]), 'f16') ?? [])],
    [1, -2, Infinity, 2 ** -24, NaN],
  );
  assert.deepEqual([...(decode(base64([0x80, 0x3f, 0x20, 0xc1]), 'bfloat16') ?? [])], [1, -10]);
  assert.deepEqual([...(decode(base64(new BigInt64Array([-5n]).buffer), 'int64') ?? [])], [-5]);
  assert.deepEqual([...(decode(base64([0xff, 1]), 'int8') ?? [])], [-1, 1]);
  assert.deepEqual([...(decode(base64([0, 7]), 'bool') ?? [])], [0, 1]);
  assert.equal(decode(base64([0]), 'float8'), undefined);
});

test('a last element that was cut off is left out', () => {
  assert.deepEqual([...(decode(base64([0, 0, 0x80, 0x3f, 1, 2]), 'float32') ?? [])], [1]);
});
