import assert from 'node:assert/strict';
import { test } from 'node:test';
import { blocks, changedLines, shifted } from '../../../extension/src/reload/lines';
import { placeIn, reloadLine, reloadPage } from '../../../extension/src/reload/report';

test('the status line of every outcome', () => {
  const applied = { outcome: 'applied', step: 1042, instructionsPatched: 3, instructionsTotal: 41, ms: 1.83 } as const;
  assert.equal(reloadLine(applied), 'applied at step 1,042 · 3 of 41 instructions · 1.83 ms');
  assert.equal(reloadLine({ ...applied, undone: true }), 'undone at step 1,042 · 3 of 41 instructions · 1.83 ms');
  assert.equal(reloadLine({ outcome: 'applied', step: 1042, pending: true }), 'will be in force from step 1,042');
  assert.equal(reloadLine({ outcome: 'unchanged' }), 'no change');
  assert.equal(
    reloadLine({ outcome: 'refused', reasons: ['train.py:7: the shape would change\nmore'] }),
    'refused: train.py:7: the shape would change',
  );
  assert.ok(reloadLine({ outcome: 'refused', reasons: ['x'.repeat(200)] }).length < 75);
});

test('the status line says what took effect, numbers and statements', () => {
  const said = (...changes: { function: string; what: string; old: string; new: string }[]): string =>
    reloadLine({ outcome: 'applied', step: 7, changes });
  const rate = { function: 'RATE', what: 'constant', old: '0.1', new: '0.2' };
  assert.equal(said(rate), 'applied at step 7 · RATE: 0.1 → 0.2');
  const inserted = { function: 'forward', what: 'inserted', old: '', new: 'h = relu(h)' };
  assert.equal(said(inserted, rate, rate), 'applied at step 7 · forward: inserted h = relu(h) and 2 more');
  assert.equal(said({ ...inserted, what: 'deleted', old: 'h =\n  relu(h)' }), 'applied at step 7 · forward: deleted h = relu(h)');
  assert.equal(said({ function: 'scale', what: 'new function', old: '', new: '' }), 'applied at step 7 · new function scale');
  const replaced = { ...inserted, what: 'body', old: 'return w - RATE * g.mean()', new: 'return w - RATE * g.sum()' };
  assert.equal(said(replaced), 'applied at step 7 · forward: now return w - RATE * g.sum()');
  assert.ok(said({ ...rate, new: 'x'.repeat(300) }).length < 70);
});

test('marked lines move with an edit, and follow one another in blocks', () => {
  assert.deepEqual(shifted([2, 5, 6], { first: 3, last: 3, lines: 3 }), [2, 7, 8]);
  assert.deepEqual(shifted([2, 5, 9], { first: 1, last: 6, lines: 1 }), [1, 4]);
  assert.deepEqual(shifted([4], { first: 4, last: 4, lines: 1 }), [4]);
  assert.deepEqual(blocks([1, 2, 3, 7, 9, 10]), [[1, 3], [7, 7], [9, 10]]); // prettier-ignore
  assert.deepEqual(blocks([]), []);
});

test('the page lists reasons and changes', () => {
  const page = reloadPage({
    outcome: 'refused',
    path: '/w/train.py',
    reasons: ['a', 'b'],
    changes: [{ function: 'f', what: 'constant', old: 'x|y', new: 2 }],
  });
  assert.match(page, /# Hot reload: refused[^]*runs on with the code it had[^]*- a\n- b[^]*\| f \| constant \| x\\\|y \| 2 \|/);
});

test('changed lines are those of the new text that the old one has not', () => {
  assert.deepEqual(changedLines('a\nb\nc\n', 'a\nB\nc\n'), [1]);
  assert.deepEqual(changedLines('a\nb\nc', 'a\nx\ny\nb\nc'), [1, 2]);
  assert.deepEqual(changedLines('a\nb\nc\nd', 'A\nb\nc\nD'), [0, 3]);
  assert.deepEqual(changedLines('a\nb', 'a'), []);
  assert.deepEqual(changedLines('a\r\nb', 'a\nb'), []);
});

test('a reason that names a place leads there', () => {
  assert.deepEqual(placeIn('/w/my net/train.py:12: shape'), { path: 'net/train.py', line: 12 });
  assert.deepEqual(placeIn('/w/train.py:12: shape'), { path: '/w/train.py', line: 12 });
  assert.equal(placeIn('no place'), undefined);
});
