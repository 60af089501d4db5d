// How the pages look and read: no serious fault found by axe in any kind of theme, no motion for who wants none, Chinese for who reads it.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { root } from '../digits.mjs';
import { faults } from '../kit/faults.mjs';
import { until } from '../kit/until.mjs';
import { scratchWorkspace, tour } from '../tour.mjs';

const SCRIPT = 'training.py';
const text = fs.readFileSync(path.join(root, 'tests/vscode/tours', SCRIPT), 'utf8');
const line = text.split('\n').findIndex((l) => l.includes('return w - RATE')) + 1;
const THEMES = {
  dark: ['Default Dark Modern', 'vscode-dark'],
  light: ['Default Light Modern', 'vscode-light'],
  'dark high contrast': ['Default High Contrast', 'vscode-high-contrast'],
  'light high contrast': ['Default High Contrast Light', 'vscode-high-contrast-light'],
};

/** To the stop where the tensor `logs` is there. */
async function toTheStop(wb) {
  await wb.openFile(SCRIPT);
  await wb.gotoLine(line);
  await wb.toggleBreakpoint(SCRIPT, line);
  await wb.page.keyboard.press('F5');
  await wb.waitStopped({ file: SCRIPT, line });
  await wb.page.keyboard.press('F5'); // a second step has a memory log to show
  await wb.waitStopped({ file: SCRIPT, line });
}

const work = scratchWorkspace({ [SCRIPT]: text });
await tour('looks', work, async ({ wb, station }) => {
  const settings = path.join(work.folder, '.vscode/settings.json');
  const choose = (more) => {
    fs.mkdirSync(path.dirname(settings), { recursive: true });
    fs.writeFileSync(settings, JSON.stringify(more));
  };
  const found = [];

  await station('a stop', () => toTheStop(wb));
  await wb.expandVariable('Tensors');
  const pages = {
    tensor: {
      open: () => wb.variableMenu('logs', 'Show Tensor'),
      title: 'Tensor logs',
      ready: (page) => until('statistics', async () => /max/.test(await page.locator('body').innerText())),
    },
    memory: {
      open: () => wb.command('DVM: Open Memory View'),
      title: 'Memory View',
      ready: (page) => page.locator('#table .tabulator-row').first().waitFor(),
    },
  };
  for (const [name, { open, title, ready }] of Object.entries(pages)) {
    await open();
    for (const [theme, [label, kind]] of Object.entries(THEMES)) {
      choose({ 'workbench.colorTheme': label });
      await station(`${name} page in ${theme}`, async () => {
        const page = await wb.webview(title);
        await until(`the theme ${label}`, async () =>
          (await page.evaluate(() => document.body.className)).split(' ').includes(kind),
        );
        await ready(page);
        found.push(...(await faults(page)).map((fault) => `${name}, ${theme}: ${fault}`));
      });
    }
    if (name === 'memory')
      await station('without motion', async () => {
        choose({ 'workbench.reduceMotion': 'on' });
        const page = await wb.webview(title);
        await until('the wish to reach the page', () =>
          page.evaluate(() => document.body.classList.contains('vscode-reduce-motion')),
        );
        const moving = await page.evaluate(() => document.getAnimations().filter((a) => a.playState === 'running').length);
        assert.equal(moving, 0, 'animations that run');
      });
    await wb.command('View: Close All Editors');
  }
  assert.deepEqual(found, [], 'faults found by axe');
  fs.writeFileSync(path.join(work.folder, 'finish'), '');
  await wb.page.keyboard.press('Shift+F5');
  await wb.waitEnded();
});

const chinese = scratchWorkspace({ [SCRIPT]: text });
await tour('chinese', { ...chinese, language: 'zh-cn' }, async ({ wb, station }) => {
  await station('the memory view in Chinese', async () => {
    await toTheStop(wb);
    await wb.command('DVM: 打开内存视图');
    const page = await wb.webview('内存视图');
    await page.locator('#facts:has-text("峰值")').waitFor();
    await page.locator('#table .tabulator-row').first().waitFor();
    assert.equal(await page.evaluate(() => document.documentElement.lang), 'zh-cn');
  });
  fs.writeFileSync(path.join(chinese.folder, 'finish'), '');
  await wb.page.keyboard.press('Shift+F5');
  await wb.waitEnded();
});
