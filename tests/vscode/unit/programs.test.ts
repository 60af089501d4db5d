import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as model from '../../../extension/src/programs/model';
import type { Advice, InstructionInfo, ProgramInfo } from '../../../extension/src/protocol';

const figures = { launches: 200, shapes: 2, hits: 199, misses: 1, own_us: 400, kernels_us: 676, waiting_us: 0 };
const advice: Advice = { verdict: 'pays', why: 'fused code', do: 'keep it captured', notes: ['a note'], figures };
const program: ProgramInfo = {
  id: 3,
  name: 'f',
  launches: 212,
  instructions: 41,
  areas: 1,
  ns: 5380,
  shapes: ['f32[4]'],
  inputs: 2,
};

test('times have three digits and their unit', () => {
  const texts = [0, 950, 5380, 24_300, 212_000, 999_600, 1_200_000, 3e9].map(model.duration);
  assert.deepEqual(texts, ['', '950 ns', '5.38 µs', '24.3 µs', '212 µs', '1.00 ms', '1.20 ms', '3.00 s']);
});

test('a function says its verdict in words, its time and its launches', () => {
  assert.equal(model.functionFacts([program], advice), 'pays · 5.38 µs a launch · 212 launches');
  assert.equal(model.functionFacts([{ ...program, launches: 1 }], undefined), '1 launch');
  const [verdict, time, ready] = model.functionRows(advice);
  assert.deepEqual([verdict?.name, verdict?.value], ['pays', 'keep it captured']);
  assert.match(verdict?.tooltip ?? '', /fused code\nWhat to do: keep it captured\na note/);
  assert.equal(time?.value, '3.38 µs kernels · 2.00 µs the VM itself');
  assert.equal(ready?.value, '99.5 % of 200 look-ups');
  assert.deepEqual(model.functionRows(undefined), []);
});

test('a program is told by direction, shapes and size', () => {
  assert.equal(model.programLabel({ ...program, backward: true }), 'backward #3');
  assert.equal(model.programDescription(program), 'f32[4] · 5.38 µs · 41 instructions · 1 area · 212 launches');
});

test('an area says why it ends', () => {
  const area = {
    index: 1,
    kind: 'cube',
    reason: 'a reason',
    stack: [1, 2],
    tiles: 1,
    tileRows: 8,
    tileCols: 64,
    ns: 0,
    instructions: 1,
  };
  assert.equal(model.areaDescription(area), '1 instruction · ends: a reason');
  assert.match(
    model.areaTooltip(area),
    /Why area 1 is not fused with more: a reason\ntiles: 1 of 8 × 64\nruns side by side with area 2$/,
  );
});

test('an instruction is its call, what it gives and where it comes from', () => {
  const i: InstructionInfo = {
    index: 3,
    area: 0,
    text: '%4 = SUM(%3, axes=[0]) f32[48]',
    name: 'h',
    foldedInto: 5,
    file: '/a/m.py',
    line: 7,
  };
  assert.deepEqual(model.splitText(i.text), { call: '%4 = SUM(%3, axes=[0])', type: 'f32[48]' });
  assert.equal(model.instructionDescription({ ...i, backward: true }), 'f32[48] · h · m.py:7 · backward · merged into %6');
});

test('a long area is shown in ranges', () => {
  assert.deepEqual(model.ranges(500), []);
  assert.deepEqual(model.ranges(1100), [
    [0, 500],
    [500, 1000],
    [1000, 1100],
  ]);
  assert.equal(model.ranges(10_000).length, 20);
});

test('functions come in the order of their first program', () => {
  const found = model.byFunction([
    { ...program, id: 9, name: 'g' },
    { ...program, id: 2, name: 'f' },
    { ...program, id: 12, name: 'f' },
  ]);
  assert.deepEqual(
    [...found].map(([name, all]) => [name, all.map((p) => p.id)]),
    [
      ['f', [2, 12]],
      ['g', [9]],
    ],
  );
});
