import assert from 'node:assert/strict';
import { test } from 'node:test';
import { areaText, factsIn, headFacts, saidBy, sizeOf, type MsbcFacts } from '../../../extension/src/msbc/facts';

test('a tensor’s size is that of its elements; a scalar has one', () => {
  assert.equal(sizeOf({ dtype: 'bfloat16', shape: [3, 5] }), 30);
  assert.equal(sizeOf({ dtype: 'float64', shape: [] }), 8);
  assert.equal(sizeOf({ dtype: 'bool', shape: [7, 0] }), 0);
});

test('of what dvm dis says, the verifier’s sentence is shown', () => {
  const stderr = 'a warning\ndvm: MSBC: at offset 0x4: version is 9; this reader knows 1\n';
  assert.equal(saidBy(stderr), 'MSBC: at offset 0x4: version is 9; this reader knows 1');
  assert.equal(saidBy('Traceback\nValueError: x\n'), undefined);
});

test('the head says what is not known, and does not list every output', () => {
  const facts: MsbcFacts = {
    version: 1,
    name: '',
    bytes: 2048,
    sha256: '',
    functionSha256: '',
    sections: [],
    inputs: [],
    inputCount: 1,
    outputs: Array.from({ length: 9 }, (_, i) => `%${i + 1}`),
    areas: [],
    areasRefused: 'the file does not describe its inputs',
    instructionCount: 12_000,
    instructions: [],
  };
  const head = Object.fromEntries(headFacts(facts));
  assert.deepEqual([head['program'], head['areas'], head['instructions']], ['without a name', 'not known', '12,000']);
  assert.equal(head['outputs'], '%1, %2, %3, %4, %5, %6 …');
});

test('an instruction without an area says nothing of one', () => {
  const areas = [{ index: 0, kind: 'cube', instructions: [3], tiles: 1, tileRows: 2, tileCols: 2, reason: '' }];
  assert.deepEqual([areaText(areas, 0), areaText(areas, -1)], ['0 · cube', '']);
});

test('what is not the facts of a file is told from them', () => {
  assert.deepEqual(factsIn('{"instructions":[]}'), { instructions: [] });
  for (const text of ['', 'welcome\n{"instructions":[]}', 'null', '[]', '{"instructions":3}'])
    assert.equal(factsIn(text), undefined);
});
