// The debug adapter under VS Code's own test client, @vscode/debugadapter-testsupport: what its scenarios check of any adapter, and tensor lines.
//
//   DVM_TEST_PYTHON=.venv/bin/python node --test tests/protocol/testsupport/suite.mjs
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import testsupport from '@vscode/debugadapter-testsupport';

const folder = path.dirname(fileURLToPath(import.meta.url));
const python = process.env.DVM_TEST_PYTHON ?? 'python3';
const program = path.join(folder, '..', 'programs', 'real.py');
const lines = readFileSync(program, 'utf8').split('\n');
const lineOf = (text) => lines.findIndex((line) => line.includes(text)) + 1;
const launch = (...args) => ({ type: 'dvm', request: 'launch', program, args: args.map(String), python: [python] });

let client;

beforeEach(async () => {
  client = new testsupport.DebugClient(python, path.join(folder, 'adapter.py'), 'dvm');
  client.defaultTimeout = 60_000;
  await client.start();
});

afterEach(() => client.stop());

async function top(threadId) {
  const { body } = await client.stackTraceRequest({ threadId, startFrame: 0, levels: 1 });
  return body.stackFrames[0];
}

test('an unknown request is an error', async () => {
  await client.initializeRequest();
  await assert.rejects(client.send('noSuchRequest'), /unknown request 'noSuchRequest'/);
});

test('initialize tells what the adapter can do', async () => {
  const { body } = await client.initializeRequest();
  assert.ok(body.supportsConfigurationDoneRequest && body.supportsDisassembleRequest && body.supportsDataBreakpoints);
  assert.ok(body.exceptionBreakpointFilters.some((filter) => filter.filter === 'nan'));
});

test('a program that does not exist is refused with its path', async () => {
  await client.initializeRequest();
  await assert.rejects(
    client.launchRequest({ ...launch(1, 0), program: '/no/such/program.py' }),
    /does not exist: \/no\/such\/program.py/,
  );
});

test('a program runs to its end', () =>
  Promise.all([
    client.configurationSequence(),
    client.launch(launch(2, 0)),
    client.waitForEvent('exited'),
    client.waitForEvent('terminated'),
  ]));

test('what it prints comes as output', () =>
  Promise.all([client.configurationSequence(), client.launch(launch(1, 0)), client.assertOutput('stdout', 'step 1 mean ')]));

test('it stops on entry', () =>
  Promise.all([
    client.configurationSequence(),
    client.launch({ ...launch(1, 0), stopOnEntry: true }),
    client.assertStoppedLocation('entry', { path: program, line: 1 }),
  ]));

test('a breakpoint in Python is hit', () => client.hitBreakpoint(launch(2, 0), { path: program, line: lineOf('print(f"step') }));

test('a breakpoint on a tensor line is hit, and the value is there', async () => {
  await client.hitBreakpoint(launch(2, 0), { path: program, line: lineOf('s = h + scale'), verified: true });
  const { body } = await client.threadsRequest();
  const frame = await top(body.threads[0].id);
  const value = await client.evaluateRequest({ expression: 'h.max()', frameId: frame.id, context: 'watch' });
  assert.equal(value.body.result, '4.0');
  const { body: scopes } = await client.scopesRequest({ frameId: frame.id });
  const { body: variables } = await client.variablesRequest({ variablesReference: scopes.scopes[0].variablesReference });
  assert.ok(
    variables.variables.some((variable) => variable.name === 'h' && variable.value.startsWith('f32[8,4]')),
    JSON.stringify(variables),
  );
});

test('steps go from tensor line to tensor line', async () => {
  await client.hitBreakpoint(launch(2, 0), { path: program, line: lineOf('h = x * w') });
  const threadId = (await client.threadsRequest()).body.threads[0].id;
  for (const text of ['s = h + scale', 'y = s.log()']) {
    const stopped = client.assertStoppedLocation('step', { path: program, line: lineOf(text) });
    await client.nextRequest({ threadId });
    await stopped;
  }
});

test('a condition over tensors stops when it holds', async () => {
  const stopped = client.assertStoppedLocation('breakpoint', { path: program, line: lineOf('y = s.log()') });
  await Promise.all([
    client.waitForEvent('initialized').then(async () => {
      const line = lineOf('y = s.log()');
      await client.setBreakpointsRequest({
        source: { path: program },
        breakpoints: [{ line, condition: 's.max() > 4.5', hitCondition: '3' }],
      });
      await client.configurationDoneRequest();
    }),
    client.launch(launch(5, 0)),
    stopped,
  ]);
});

test('a NaN stops as an exception', async () => {
  const stopped = client.waitForEvent('stopped');
  await Promise.all([
    client.waitForEvent('initialized').then(async () => {
      await client.setExceptionBreakpointsRequest({ filters: ['nan'] });
      await client.configurationDoneRequest();
    }),
    client.launch(launch(5, 0, -9)),
    stopped,
  ]);
  const { body } = await stopped;
  assert.equal(body.reason, 'exception');
  assert.equal((await top(body.threadId)).line, lineOf('y = s.log()'));
});

test('the place of a stop is in the disassembly', async () => {
  await client.hitBreakpoint(launch(2, 0), { path: program, line: lineOf('s = h + scale') });
  const frame = await top((await client.threadsRequest()).body.threads[0].id);
  const memoryReference = frame.instructionPointerReference;
  const { body } = await client.disassembleRequest({ memoryReference, instructionOffset: -1, instructionCount: 2 });
  assert.equal(body.instructions.length, 2);
  assert.equal(body.instructions[1].address, memoryReference); // of the line that has yet to run
  assert.match(body.instructions[0].instruction, / = MUL\(/);
  assert.equal(body.instructions[0].line, lineOf('h = x * w'));
});
