import assert from 'node:assert/strict';
import { test } from 'node:test';
import { changedLines, placeIn, reloadLine, reloadPage } from '../../../extension/src/reload/report';

test('the status line of every outcome', () => {
  const applied = { outcome: 'applied', step: 1042, instructionsPatched: 3, instructionsTotal: 41, ms: 1.83 } as const;
  assert.equal(reloadLine(applied), 'applied at step 1,042 · 3 of 41 instructions · 1.83 ms');
  assert.equal(reloadLine({ ...applied, undone: true }), 'undone at step 1,042 · 3 of 41 instructions · 1.83 ms');
  assert.equal(reloadLine({ outcome: 'unchanged' }), 'no change');
  assert.equal(
    reloadLine({ outcome: 'refused', reasons: ['train.py:7: the shape would change\nmore'] }),
    'refused: train.py:7: the shape would change',
  );
  assert.ok(reloadLine({ outcome: 'refused', reasons: ['x'.repeat(200)] }).length < 75);
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
