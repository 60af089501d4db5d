// A program that runs on: attached to by its port, switched to another device, edited and put back, stopped at its first NaN.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { root } from '../digits.mjs';
import { freePort } from '../kit/server.mjs';
import { until } from '../kit/until.mjs';
import { scratchWorkspace, statusItem, tour } from '../tour.mjs';

const SCRIPT = 'training.py';
const text = fs.readFileSync(path.join(root, 'tests/vscode/tours', SCRIPT), 'utf8');
const lineOf = (part) => text.split('\n').findIndex((l) => l.includes(part)) + 1;
const port = await freePort();
const attach = {
  name: 'attach',
  type: 'dvm',
  request: 'attach',
  connect: { host: '127.0.0.1', port },
  dvm: { hotReload: 'onSave' },
};
const work = scratchWorkspace({
  [SCRIPT]: text,
  '.vscode/launch.json': JSON.stringify({ version: '0.2.0', configurations: [attach] }),
});
const program = spawn(path.join(root, '.venv/bin/python'), [SCRIPT, '--listen', String(port)], {
  cwd: work.folder,
  stdio: 'inherit',
});
const ended = new Promise((resolve) => program.once('exit', resolve));

await tour('stops', work, async ({ wb, station }) => {
  const stepNow = async () => Number((await statusItem(wb, /· step [\d,]+/)).replace(/.*step |,/g, ''));

  const lens = (words) => wb.editor(SCRIPT).locator('.codelens-decoration', { hasText: words }).first();

  await station('attached by port', async () => {
    await wb.openFile(SCRIPT);
    await wb.page.keyboard.press('F5');
    const first = await stepNow();
    await until('steps', async () => (await stepNow()) > first);
  });

  await station('another device in mid-run', async () => {
    await wb.command('DVM: Switch Device...');
    await wb.accept('npu-sim:910b');
    await statusItem(wb, /npu-sim:910b · step/);
    const first = await stepNow();
    await until('steps there', async () => (await stepNow()) > first);
  });

  await station('an edit', async () => {
    await wb.gotoLine(lineOf('return w - RATE'), text.split('\n')[lineOf('return w - RATE') - 1].indexOf('logs') + 1);
    await wb.page.keyboard.type('0.5 * ');
    await wb.page.keyboard.press('Control+S');
    await statusItem(wb, /applied at step [\d,]+ · update: now return w/);
    await lens(/in force since step [\d,]+/).waitFor();
  });

  await station('what the last save changed', async () => {
    await wb.command('DVM: Show What the Last Save Changed');
    const diff = wb.page.locator('.monaco-diff-editor');
    await diff.locator('.editor.modified .view-line', { hasText: '0.05' }).first().waitFor();
    await wb.command('View: Close Editor');
    await until('the diff to close', async () => !(await diff.count()));
  });

  await station('an edit that is refused', async () => {
    await wb.gotoLine(lineOf('def update'), text.split('\n')[lineOf('def update') - 1].indexOf('shift') + 6);
    await wb.page.keyboard.type(', more');
    await wb.page.keyboard.press('Control+S');
    await statusItem(wb, /refused: line \d+/);
    assert.equal(await lens(/in force since/).count(), 1);
  });

  await station('put right', async () => {
    for (const _ of ', more') await wb.page.keyboard.press('Backspace');
    await wb.page.keyboard.press('Control+S');
    await statusItem(wb, /no change/);
  });

  await station('the edit undone', async () => {
    await wb.command('DVM: Undo the Last Reload');
    await statusItem(wb, /undone/);
    await until('the mark to go', async () => !(await lens(/in force since/).count()));
  });

  await station('the first NaN', async () => {
    await wb.command('View: Show Run and Debug');
    await wb.expandPane('Breakpoints');
    const filter = wb.page.locator('.debug-breakpoints .monaco-list-row', { hasText: 'NaN in a Tensor' });
    await filter.locator('input[type=checkbox]').first().click();
    fs.writeFileSync(path.join(work.folder, 'poison'), '');
    await wb.waitStopped({ file: SCRIPT, line: lineOf('logs = ') });
    const told = await until('its explanation', async () => {
      const box = wb.page.locator('.exception-widget:visible').first();
      return (await box.count()) ? box.innerText() : undefined;
    });
    await until('the tensors there', async () => (await wb.variables()).some((row) => row.name === 'logs'));
    assert.match(told, /LOG made \d+ NaN in logs/);
    assert.match(told, /the first at \[\d+, \d+\]: NaN from \(h \+ shift\) = -/);
  });

  await station('the program runs on without the debugger', async () => {
    await wb.command('Debug: Disconnect');
    await wb.waitEnded();
    assert.equal(program.exitCode, null, 'the program ended with the session');
    fs.writeFileSync(path.join(work.folder, 'finish'), '');
    assert.equal(await ended, 0);
  });
});
program.kill();
