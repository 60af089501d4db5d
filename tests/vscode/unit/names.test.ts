import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assignedIn, expressionAt, namesIn } from '../../../extension/src/editor/names';

const names = (line: string): string[] => namesIn(line).map((n) => n.text);

test('names of a line, without calls, keywords, strings, comments and keyword arguments', () => {
  assert.deepEqual(names('    h = softmax(scores, axis=-1)  # h is "h"'), ['h', 'scores']);
  assert.deepEqual(names("x = self.w1 @ f'{y}' + z"), ['x', 'self.w1', 'z']);
  assert.deepEqual(names('loss = h.sum() if ok else None'), ['loss', 'h', 'ok']);
  assert.deepEqual(names('a == b'), ['a', 'b']);
  assert.deepEqual(names('"""doc h"""'), []);
  assert.deepEqual(names('s = "it\\"s h" + t'), ['s', 't']);
});

test('positions are those of the line', () => {
  assert.deepEqual(namesIn('y = "…" + w'), [
    { text: 'y', start: 0, end: 1 },
    { text: 'w', start: 10, end: 11 },
  ]);
});

test('a hover takes the dotted name up to the word under it', () => {
  const line = 'y = self.layer.w1(x)  # note';
  assert.equal(expressionAt(line, 9)?.text, 'self.layer');
  assert.equal(expressionAt(line, 15)?.text, 'self.layer.w1');
  assert.equal(expressionAt(line, 5)?.text, 'self');
  assert.equal(expressionAt(line, 24), undefined);
  assert.equal(expressionAt('for i in range(3):', 1), undefined);
});

test('a hover over brackets takes the element, over the name before them the whole', () => {
  const line = 'y = self.w1[0, 1:3] + x[i]';
  assert.equal(expressionAt(line, 10)?.text, 'self.w1');
  assert.equal(expressionAt(line, 13)?.text, 'self.w1[0, 1:3]');
  assert.equal(expressionAt(line, 24)?.text, 'i');
  assert.equal(expressionAt(line, 20), undefined);
});

test('names a line gives a value', () => {
  const assigned = (line: string): string[] => [...assignedIn(line)];
  assert.deepEqual(assigned('batch, rows = x.shape'), ['batch', 'rows']);
  assert.deepEqual(assigned('h = f(x, axis=1)'), ['h']);
  assert.deepEqual(assigned('h: Tensor = x == y'), ['h']);
  assert.deepEqual(assigned('t @= w'), ['t']);
  assert.deepEqual(assigned('for i, x in enumerate(xs):'), ['i', 'x']);
  assert.deepEqual(assigned('with open(p) as f:'), ['f']);
  assert.deepEqual(assigned('f(x, axis=1)'), []);
  assert.deepEqual(assigned('assert a == b <= c'), []);
});
