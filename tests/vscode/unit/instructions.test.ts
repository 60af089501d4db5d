import assert from 'node:assert/strict';
import { test } from 'node:test';
import { find, hoverText } from '../../../extension/src/programs/instructions';

const names = (word: string): string[] => find(word)?.entries.map((e) => e.name) ?? [];

test('a word of any level is found, one that is no instruction is not', () => {
  assert.deepEqual(names('EXP'), ['EXP']);
  assert.deepEqual(names('Exp'), ['Exp']);
  assert.deepEqual(names('BroadcastX'), ['BroadcastX']);
  assert.ok(names('Reduce').includes('SUM') && names('Reduce').includes('MEAN'));
  for (const word of ['area', 'f32', 'constructor', 'toString', '']) assert.equal(find(word), undefined, word);
});

test('the form of a binary tile instruction is told by its name', () => {
  assert.deepEqual([names('Adds'), find('Adds')?.form], [['Add'], 'the right side is one value']);
  assert.deepEqual([names('ScalarSub'), find('ScalarSub')?.form], [['Sub'], 'the left side is one value']);
  assert.deepEqual([names('SubX'), find('SubX')?.form], [['Sub'], 'the right side is one value per row']);
});

test('a hover says what is done, with what, and what it costs', () => {
  const [text] = hoverText(find('MATMUL')!);
  assert.match(text ?? '', /^\*\*MATMUL\*\* `0x38`: r = a @ b over the last two axes/);
  assert.match(text ?? '', /operands: 2 · result: same · cost: /);
});
