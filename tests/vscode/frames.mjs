// How many frames a second a tensor's page draws while 20 tensors of 1 MB are live: all are watched, PAGES of them (default: all) also with
// their values, in pages behind the one that is seen. A benchmark, run by hand: prints, asserts nothing. PROFILE=1 adds where its time goes.
// usage: node tests/vscode/frames.mjs DIR EXT.vsix [SECONDS [TENSORS [PAGES]]]
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { root } from './digits.mjs';
import { openWorkbench, startServer } from './kit/server.mjs';
import { sleep, until } from './kit/until.mjs';
import { dir, scratchWorkspace, vsix } from './tour.mjs';

const [seconds = 10, tensors = 20, pages = tensors] = process.argv.slice(4).map(Number);
const names = Array.from({ length: tensors }, (_, i) => `h${i}`);
const SCRIPT = `import os
import time
import numpy as np
import dvm_core as dvm

@dvm.jit
def step(x):
${names.map((name, i) => `    ${name} = ${i ? names[i - 1] : 'x'} * 0.99 + 0.01`).join('\n')}
    return ${names.at(-1)}

x = dvm.tensor(np.random.default_rng(0).standard_normal((512, 512)).astype(np.float32))
while True:
    x = step(x)
    x.numpy()
    time.sleep(0.01 if os.path.exists("fast") else 0.5)
`;
const FIRST = SCRIPT.split('\n').findIndex((l) => l.includes('h0 = ')) + 1;
const configuration = { name: 'loop', type: 'dvm', request: 'launch', program: '${workspaceFolder}/loop.py' };
const { folder, remove } = scratchWorkspace({
  'loop.py': SCRIPT,
  '.vscode/launch.json': JSON.stringify({ version: '0.2.0', configurations: [configuration] }),
});

/** Seconds of processor time of every process below this one, by what it is. */
function processorTimes() {
  const rows = execFileSync('ps', ['-eo', 'pid=,ppid=,args='], { encoding: 'utf8' })
    .split('\n')
    .map((row) => /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(row))
    .filter(Boolean)
    .map(([, pid, parent, args]) => ({ pid: Number(pid), parent: Number(parent), time: secondsOf(pid), args }));
  const ours = new Set([process.pid]);
  for (let before = 0; before < ours.size; ) {
    before = ours.size;
    for (const { pid, parent } of rows) if (ours.has(parent)) ours.add(pid);
  }
  const times = {};
  for (const { pid, time, args } of rows) {
    if (!ours.has(pid)) continue;
    const [, what] = KINDS.find(([pattern]) => pattern.test(args)) ?? [undefined, 'the rest'];
    times[what] = (times[what] ?? 0) + time;
  }
  return times;
}
/** Linux counts in hundredths of a second; `ps` tells whole ones. */
function secondsOf(pid) {
  try {
    const [user, system] = fs.readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1).split(' ').slice(11, 13);
    return (Number(user) + Number(system)) / 100;
  } catch {
    return 0; // it has ended
  }
}
const KINDS = [
  [/--type=renderer/, 'workbench and pages'],
  [/--type=gpu-process/, 'compositor'],
  [/--type=extensionHost|bootstrap-fork/, 'extension host'],
  [/dvm_adapter/, 'debug adapter'],
  [/loop\.py/, 'program'],
];

/** Profiles a frame from now on; gives what prints the functions that took most of the time. */
async function profiled(target) {
  const session = await wb.context.newCDPSession(target).catch(() => undefined);
  if (!session) return async () => console.log('in the same process');
  await session.send('Profiler.enable');
  await session.send('Profiler.start');
  return async () => {
    const { profile } = await session.send('Profiler.stop');
    const own = new Map();
    const at = new Map(profile.nodes.map((n) => [n.id, n.callFrame]));
    profile.samples.forEach((id, i) => {
      const { functionName, url, lineNumber, columnNumber } = at.get(id);
      const name = `${functionName || '?'} ${path.basename(url)}:${lineNumber}:${columnNumber}`;
      own.set(name, (own.get(name) ?? 0) + profile.timeDeltas[i] / 1e6);
    });
    for (const [name, time] of [...own].sort((a, b) => b[1] - a[1]).slice(0, 25)) console.log(`${time.toFixed(2)} s  ${name}`);
  };
}

const srv = await startServer({ dir, folder, vsix: [vsix] });
const wb = await openWorkbench({ dir, url: srv.url, width: 1500, height: 940 });
try {
  await wb.openFile('loop.py');
  await wb.command('Debug: Start Debugging');
  await until('the program', async () => (await wb.statusBar()).some((s) => /step/.test(s)));
  for (const [i, name] of names.entries()) {
    if (i) await wb.command('View: Focus First Editor Group');
    await wb.gotoLine(FIRST + i, 6);
    await wb.command('DVM: Watch Tensor');
    if (i < tensors - pages) continue;
    await wb.command('DVM: Show Tensor');
    await wb.webview(`Tensor ${name}`);
  }
  const page = await wb.webview(`Tensor ${names.at(-1)}`);
  await page.evaluate(() => {
    globalThis.messages = {};
    globalThis.addEventListener('message', ({ data }) => (messages[data.type] = (messages[data.type] ?? 0) + 1));
  });
  fs.writeFileSync(path.join(folder, 'fast'), '');
  const now = async () => ({
    at: Date.now(),
    step: Number(
      (await wb.statusBar())
        .map((s) => /step ([\d,]+)/.exec(s)?.[1])
        .find(Boolean)
        ?.replaceAll(',', ''),
    ),
    ...(await page.evaluate(() => ({ frames: Number(document.body.dataset.frames ?? 0), messages: { ...messages } }))),
  });
  await sleep(5000);
  const [times, before] = [processorTimes(), await now()];
  const profiles = process.env.PROFILE ? await Promise.all([profiled(wb.page), profiled(page)]) : [];
  await sleep(seconds * 1000);
  for (const told of profiles) await told();
  const [after, timesAfter] = [await now(), processorTimes()];
  const rate = (a, b) => (((b ?? 0) - (a ?? 0)) * 1000) / (after.at - before.at);
  const told = Object.entries(after.messages).map(([type, n]) => `${rate(before.messages[type], n).toFixed(1)} ${type}`);
  const spent = Object.entries(timesAfter).map(([what, t]) => `${what} ${rate(times[what], t).toFixed(2)}`);
  const frames = after.frames - before.frames;
  const each = Object.entries(timesAfter).map(
    ([what, t]) => `${what} ${(((t - (times[what] ?? 0)) * 1000) / frames).toFixed(0)}`,
  );
  console.log(`${rate(before.frames, after.frames).toFixed(1)} frames/s with ${tensors} live tensors of 1 MB`);
  console.log(
    `${(frames / (after.step - before.step)).toFixed(2)} frames a step; ms of processor time a frame: ${each.join(', ')}`,
  );
  console.log(`${rate(before.step, after.step).toFixed(1)} steps/s; to the page, a second: ${told.join(', ')}`);
  console.log(`cores in use: ${spent.join(', ')}`);
  await wb.screenshot(path.join(root, 'build/screenshots/frames.png'));
} catch (error) {
  console.log(error.stack);
  await wb.screenshot(path.join(root, 'build/screenshots/frames-failure.png'));
  process.exitCode = 1;
} finally {
  await wb.close();
  await srv.stop();
  remove();
}
