import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { AdapterProcess, type DapMessage } from '../../../extension/src/launch/adapter_process';

/** Answers each request with its own arguments, but for `refuse`, `die`, and `tell`, which sends two events first. */
const ADAPTER = `
const send = (m) => { const body = JSON.stringify(m); process.stdout.write('Content-Length: ' + Buffer.byteLength(body) + '\\r\\n\\r\\n' + body); };
let rest = Buffer.alloc(0);
process.stdin.on('data', (data) => {
  rest = Buffer.concat([rest, data]);
  for (;;) {
    const at = rest.indexOf('\\r\\n\\r\\n');
    if (at < 0) return;
    const size = Number(/Content-Length: (\\d+)/.exec(rest.subarray(0, at))[1]);
    if (rest.length < at + 4 + size) return;
    const m = JSON.parse(rest.subarray(at + 4, at + 4 + size));
    rest = rest.subarray(at + 4 + size);
    if (m.command === 'die') process.exit(3);
    if (m.command === 'wait') continue;
    if (m.command === 'tell') ['dvm/snapshots', 'dvm/step', 'dvm/program'].forEach((event) => send({ seq: 1, type: 'event', event, body: {} }));
    const success = m.command !== 'refuse';
    send({ seq: 1, type: 'response', request_seq: m.seq, command: m.command, success, message: success ? undefined : 'no such Ω', body: m.arguments });
  }
});
`;

/** One that still runs when a test has failed would keep this process from ending. */
const all: AdapterProcess[] = [];
after(() => all.forEach((adapter) => adapter.dispose()));

function started(command = process.execPath): {
  adapter: AdapterProcess;
  heard: DapMessage[];
  aside: DapMessage[];
  end: Promise<string>;
} {
  const [heard, aside]: [DapMessage[], DapMessage[]] = [[], []];
  let adapter: AdapterProcess;
  const end = new Promise<string>((resolve) => {
    adapter = new AdapterProcess(command, ['-e', ADAPTER], process.env, {
      message: (m) => heard.push(m),
      aside: (m) => aside.push(m),
      text: () => {},
      ended: resolve,
    });
    all.push(adapter);
  });
  return { adapter: adapter!, heard, aside, end };
}

test('our requests are answered beside the editor’s, and frequent events are for us alone', async () => {
  const { adapter, heard, aside } = started();
  adapter.send({ seq: 1, type: 'request', command: 'threads', arguments: { a: 'é' } });
  assert.deepEqual(await adapter.request('dvm/view', { b: '数' }), { b: '数' });
  await assert.rejects(adapter.request('refuse', {}), /^Error: no such Ω$/);
  await adapter.request('tell', {});
  assert.deepEqual(
    heard.map((m) => [m.type, m.event ?? m.request_seq, m.body]),
    [
      ['response', 1, { a: 'é' }],
      ['event', 'dvm/program', {}],
    ],
  );
  assert.deepEqual(
    aside.map((m) => m.event),
    ['dvm/snapshots', 'dvm/step'],
  );
  adapter.dispose();
});

test('when the adapter dies, whoever waits is told and the session ends', async () => {
  const { adapter, heard, end } = started();
  const waiting = assert.rejects(adapter.request('wait', {}), /ended with code 3/);
  adapter.send({ seq: 1, type: 'request', command: 'threads' });
  await adapter.request('tell', {});
  heard.length = 0;
  adapter.send({ seq: 2, type: 'request', command: 'die' });
  assert.match(await end, /ended with code 3/);
  await waiting;
  adapter.send({ seq: 3, type: 'request', command: 'disconnect' });
  adapter.send({ seq: 4, type: 'request', command: 'scopes' });
  assert.deepEqual(
    heard.map((m) => m.event ?? [m.request_seq, m.success]),
    [[2, false], 'terminated', [3, true], [4, false]],
  );
  await assert.rejects(adapter.request('dvm/view', {}), /ended with code 3/);
});

test('an interpreter that is not there is named', async () => {
  const { adapter, heard, end } = started('/no/such/python');
  adapter.send({ seq: 1, type: 'request', command: 'initialize' });
  assert.match(await end, /cannot start \/no\/such\/python: .*ENOENT/);
  assert.match(heard[0]?.message ?? '', /cannot start/);
});
