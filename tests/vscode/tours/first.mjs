// A first session: one file, no launch.json, and no mouse. Then the same folder where nobody has said that it is trusted.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { root } from '../digits.mjs';
import { until } from '../kit/until.mjs';
import { scratchWorkspace, statusItem, tour } from '../tour.mjs';

const SCRIPT = 'training.py';
const text = fs.readFileSync(path.join(root, 'tests/vscode/tours', SCRIPT), 'utf8');
const line = text.split('\n').findIndex((l) => l.includes('logs = ')) + 1;

const work = scratchWorkspace({ [SCRIPT]: text });
await tour('first', work, async ({ wb, station }) => {
  const { keyboard } = wb.page;

  await station('a breakpoint with F9', async () => {
    await wb.typed(SCRIPT, 'Control+P', '');
    await wb.editor(SCRIPT).locator('.view-line').first().waitFor();
    await wb.gotoLine(line);
    await keyboard.press('F9');
    await until('the breakpoint', async () => (await wb.breakpointLines(SCRIPT)).includes(line));
  });

  await station('F5 without a launch configuration', async () => {
    await keyboard.press('F5');
    await wb.waitStopped({ file: SCRIPT, line });
    assert.ok(!fs.existsSync(path.join(work.folder, '.vscode/launch.json')));
  });

  await station('a step', async () => {
    await keyboard.press('F10');
    await wb.waitStopped({ file: SCRIPT, line: line + 1 });
  });

  await station('a tensor among the variables', async () => {
    await wb.typed('Run and Debug: Focus on Variables View');
    const focused = wb.page.locator('.debug-variables .monaco-list-row.focused');
    await until('the tensor in focus', async () => {
      const now = (await focused.count()) ? (await focused.innerText()).trim() : '';
      if (/^logs\b/.test(now)) return true;
      await keyboard.press(/^Tensors/.test(now) ? 'ArrowRight' : 'ArrowDown');
      return false;
    });
  });

  await station('its page', async () => {
    await keyboard.press('Shift+F10');
    const entry = wb.page.locator('.monaco-menu .action-item.focused');
    await wb.page.locator('.monaco-menu').waitFor();
    await until('the entry in focus', async () => {
      if ((await entry.count()) && (await entry.innerText()).trim() === 'Show Tensor') return true;
      await keyboard.press('ArrowDown');
      return false;
    });
    await keyboard.press('Enter');
    const page = await wb.webview('Tensor logs');
    await until('its statistics', async () => /max/.test(await page.locator('body').innerText()));
  });

  await station('a report of a fault', async () => {
    await wb.typed('DVM: Prepare a Report of a Fault');
    const text = wb.page.locator('.editor-instance .monaco-editor .view-lines', { hasText: 'Nothing was sent' });
    await text.waitFor();
    await until('what the doctor says first: the rest is below the window', async () =>
      /ok\s+Python\s+3\./.test(await text.innerText()),
    );
  });

  await station('how long the extension took to start', async () => {
    await wb.typed('Developer: Show Running Extensions');
    const row = wb.page.locator('.runtime-extensions-editor .monaco-list-row', { hasText: 'DVM Live' });
    const told = await until('the figure', async () => /Activation: (\d+)ms/.exec(await row.first().innerText()));
    console.log(`activation took ${told[1]} ms by the host's figures`);
  });

  await station('the end', async () => {
    fs.writeFileSync(path.join(work.folder, 'finish'), '');
    await keyboard.press('Shift+F5');
    await wb.waitEnded();
  });
});

const doubtful = scratchWorkspace({ [SCRIPT]: text });
const settings = { 'security.workspace.trust.enabled': true, 'security.workspace.trust.startupPrompt': 'never' };
await tour('restricted', { ...doubtful, settings, env: { TRUST: 'ask' } }, async ({ wb, station }) => {
  await station('nothing runs in a folder that is not trusted', async () => {
    await wb.openFile(SCRIPT);
    await statusItem(wb, /Restricted Mode/);
    await wb.page.keyboard.press('F5');
    const dialog = wb.page.locator('.monaco-dialog-box', { hasText: /trust/i });
    await dialog.waitFor();
    await wb.page.keyboard.press('Escape');
    await until('the dialog to go', async () => !(await dialog.count()));
    assert.equal(await wb.page.locator('.codicon-debug-stop:visible').count(), 0);
  });
});
