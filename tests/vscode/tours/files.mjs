// A .msbc file opened: what it says, a row gone to with the keyboard, its source line; one that is damaged; one in a folder nobody trusts.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { root } from '../digits.mjs';
import { faults } from '../kit/faults.mjs';
import { until } from '../kit/until.mjs';
import { scratchWorkspace, statusItem, tour } from '../tour.mjs';

const SCRIPT = `import numpy as np
import dvm_core as dvm


@dvm.jit
def attend(q, k, v):
    scores = q @ k.transpose(0, 2, 1) / 8.0
    weights = scores.softmax(-1)
    return weights @ v


q, k, v = (dvm.tensor(np.ones((4, 16, 64), np.float32)) for _ in range(3))
attend(q, k, v).numpy()
data = dvm.programs()[0].msbc
open("attend.msbc", "wb").write(data)
open("damaged.msbc", "wb").write(data[:-20])
`;
const work = scratchWorkspace({ 'attention.py': SCRIPT });
execFileSync(path.join(root, '.venv/bin/python'), ['attention.py'], { cwd: work.folder });

/** Opens a file whose editor is a page, and gives the page. */
async function opened(wb, name) {
  await wb.typed(name, 'Control+P', '');
  return wb.webview(name);
}

await tour('files', work, async ({ wb, station }) => {
  let page;
  await station('a program file', async () => {
    page = await opened(wb, 'attend.msbc');
    await page.locator('#table .tabulator-row', { hasText: 'MATMUL' }).first().waitFor();
    await page.locator('#table .tabulator-col-title', { hasText: 'made by' }).waitFor();
    assert.match(await page.locator('#selected').innerText(), /SHA-256 of the file\s+[0-9a-f]{64}/);
    assert.deepEqual(await faults(page), []);
  });

  await station('an instruction by keyboard', async () => {
    const row = page.locator('#table .tabulator-row', { hasText: 'MATMUL' }).first();
    await row.focus();
    await wb.page.keyboard.press('Enter');
    await until('what is known of it', async () =>
      /attention\.py:7[^]*read by[^]*SHA-256/.test(await page.locator('#selected').innerText()),
    );
    await wb.page.keyboard.press('ArrowDown');
    await wb.page.keyboard.press('Enter');
    await until('the next one', async () => !/MATMUL/.test(await page.locator('#selected h2').innerText()));
  });

  await station('its source line', async () => {
    await page.locator('#selected a', { hasText: 'attention.py:7' }).click();
    await statusItem(wb, /Ln 7, Col 1/);
  });

  await station('a damaged file', async () => {
    page = await opened(wb, 'damaged.msbc');
    await page.locator('#refused', { hasText: /no valid program[^]*MSBC: at offset 0x/ }).waitFor();
    assert.deepEqual(await faults(page), []);
  });

  await station('the file mended', async () => {
    fs.copyFileSync(path.join(work.folder, 'attend.msbc'), path.join(work.folder, 'damaged.msbc'));
    await page.locator('#table .tabulator-row', { hasText: 'MATMUL' }).first().waitFor();
  });
});

const doubtful = scratchWorkspace({ 'attend.msbc': 'MSBC' });
const settings = { 'security.workspace.trust.enabled': true, 'security.workspace.trust.startupPrompt': 'never' };
await tour('files in a restricted folder', { ...doubtful, settings, env: { TRUST: 'ask' } }, async ({ wb, station }) => {
  await station('what to do', async () => {
    const page = await opened(wb, 'attend.msbc');
    await page.locator('#refused', { hasText: /not trusted/ }).waitFor();
    await page.locator('vscode-button', { hasText: 'Manage Workspace Trust' }).waitFor();
  });
});
