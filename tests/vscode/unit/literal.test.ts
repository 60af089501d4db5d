import assert from 'node:assert/strict';
import { test } from 'node:test';
import { numpyLiteral, rowsOf, tabSeparated } from '../../../extension/src/views/literal';
import { partsOf } from '../../../extension/src/watch/address';

test('a NumPy literal has all digits, and Python’s words for what is not finite', () => {
  assert.equal(
    numpyLiteral(['0.1', 'NaN', 'Inf', '-Inf'], 2, 2, 'float32'),
    'np.array([[0.1, np.nan],\n          [np.inf, -np.inf]], dtype=np.float32)',
  );
  assert.equal(numpyLiteral(['1', '2'], 2, 1, 'int64'), 'np.array([1, 2], dtype=np.int64)');
  assert.equal(numpyLiteral(['1.5'], 1, 0, 'bfloat16'), 'np.array(1.5, dtype=np.float32)');
  assert.equal(numpyLiteral(['True'], 1, 1, 'bool'), 'np.array([True], dtype=np.bool_)');
  assert.equal(numpyLiteral([], 0, 2, 'float32'), 'np.array([], dtype=np.float32)');
});

test('tab-separated values are lines of a spreadsheet', () => {
  assert.equal(tabSeparated(['1', '2', '3', 'NaN'], 2), '1\t2\n3\tNaN');
  assert.deepEqual(rowsOf([], 0), []);
});

test('an address of the Disassembly view names a program and an instruction', () => {
  assert.deepEqual(partsOf('0x0000000380000020'), { program: 3, instruction: 32 });
  assert.equal(partsOf('0x000000037fffffff'), undefined);
  assert.equal(partsOf('0x1000'), undefined);
});
