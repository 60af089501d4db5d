// A tensor watched while its program runs: history, an earlier step, the difference from it, a copy that stalls. Then two ranks at once.
import fs from 'node:fs';
import path from 'node:path';
import { until } from '../kit/until.mjs';
import { scratchWorkspace, statusItem, tour } from '../tour.mjs';

const SCRIPT = `import sys
import time
from pathlib import Path

import numpy as np

import dvm_core as dvm


@dvm.jit
def update(w, x):
    h = (x @ w).tanh()
    return w + 0.01 * h.mean()


draw = np.random.default_rng(int(sys.argv[-1]))
w = dvm.tensor(draw.normal(0, 0.2, (16, 24)).astype(np.float32))
x = dvm.tensor(draw.normal(0, 1, (8, 16)).astype(np.float32))
while not Path("finish").exists():
    if Path("stall").exists():
        dvm._core.plant_fault("stall", of="snapshot", milliseconds=400)
    w = update(w, x)
    w.numpy()
    time.sleep(0.2)
`;
const LINE = SCRIPT.split('\n').findIndex((l) => l.includes('h = ')) + 1;
const configuration = (more) => ({ name: 'run', type: 'dvm', request: 'launch', console: 'internalConsole', ...more });
const launch = (more) => JSON.stringify({ version: '0.2.0', configurations: [configuration(more)] });
const watchView = (wb) =>
  wb.page.locator('.pane').filter({ has: wb.page.locator('.pane-header', { hasText: /^Tensor Watch/i }) });
const watchRow = (wb, name) => watchView(wb).locator(`.monaco-list-row[aria-label^="${name},"]`).first();

/** Sets a watch of h, before the program starts, and starts it. */
async function watching(wb) {
  await wb.openFile('loop.py');
  await wb.gotoLine(LINE, 5);
  await wb.command('DVM: Watch Tensor');
  await wb.page.keyboard.press('F5');
  await wb.command('View: Show Run and Debug');
  await wb.expandPane('Tensor Watch');
}

const single = scratchWorkspace({
  'loop.py': SCRIPT,
  '.vscode/launch.json': launch({
    program: '${workspaceFolder}/loop.py',
    args: ['1'],
    dvm: { device: 'npu-sim:910b', snapshotTimeoutMs: 100 },
  }),
});
await tour('watch', single, async ({ wb, station }) => {
  let page;
  await station('a watch with its history', async () => {
    await watching(wb);
    await until('samples', async () => /μ \S+ σ \S+\s+[▁▂▃▄▅▆▇█]{5,}/.test(await watchRow(wb, 'h').innerText()));
    await watchRow(wb, 'h').hover();
    await watchRow(wb, 'h').locator('[aria-label="Show Tensor"]').first().click();
    page = await wb.webview('Tensor h');
    await until('steps that are kept', async () => Number(await page.locator('#step').getAttribute('max')) > 5);
    await page.locator('#line canvas, #line svg').first().waitFor();
  });

  await station('an earlier step', async () => {
    await page.locator('#step').focus();
    for (let i = 0; i < 3; i++) await wb.page.keyboard.press('ArrowLeft');
    await until('that step', async () => !/^now/.test(await page.locator('#at').innerText()));
    const [shown, looked] = [page.locator('#when'), page.locator('#at')];
    const number = async (place) => /[\d,]+/.exec(await place.innerText())?.[0];
    await until('its values', async () => (await number(shown)) === (await number(looked)));
    await page.locator('#now').click();
    await until('now again', async () => /^now/.test(await page.locator('#at').innerText()));
  });

  await station('compared with the previous step', async () => {
    await page.locator('#partner').click();
    await page.locator('#partner >> text="previous step" >> visible=true').click();
    await page.locator('#compared:visible #comparedTitle', { hasText: /^Step [\d,]+ less step [\d,]+$/ }).waitFor();
    await until('how many differ', async () => /differ\s+\d/.test(await page.locator('#differences').innerText()));
  });

  await station('the page alone', async () => {
    await wb.command('View: Toggle Maximize Editor Group');
    await until(
      'room for two columns',
      async () =>
        ((await page.locator('#facts').boundingBox())?.x ?? 0) > 500 + ((await page.locator('#picture').boundingBox())?.x ?? 0),
    );
  });
  await wb.command('View: Toggle Maximize Editor Group');

  await station('a placeholder where a copy stalled', async () => {
    fs.writeFileSync(path.join(single.folder, 'stall'), '');
    await until('the reason on the page', async () =>
      /⚠ the copy (was not done|did not start) within 100 ms/.test(await page.locator('#note').innerText()),
    );
    await until('the reason in the row', async () => /within 100 ms/.test(await watchRow(wb, 'h').innerText()));
  });

  await station('values again', async () => {
    fs.rmSync(path.join(single.folder, 'stall'));
    await until('no reason', async () => (await page.locator('#note').innerText()) === '');
    await until('a statistic in the row', async () => /μ \S+ σ/.test(await watchRow(wb, 'h').innerText()));
  });

  await station('the end', async () => {
    fs.writeFileSync(path.join(single.folder, 'finish'), '');
    await wb.waitEnded();
  });
});

const RANKS = `import os
import subprocess
import sys

ranks = [
    subprocess.Popen([sys.executable, "loop.py", str(rank + 1)], env={**os.environ, "RANK": str(rank), "WORLD_SIZE": "2"})
    for rank in (0, 1)
]
for rank in ranks:
    rank.wait()
`;
const ranks = scratchWorkspace({
  'loop.py': SCRIPT,
  'ranks.py': RANKS,
  '.vscode/launch.json': launch({ program: '${workspaceFolder}/ranks.py' }),
});
await tour('ranks', ranks, async ({ wb, station }) => {
  await station('two ranks, each a session', async () => {
    await watching(wb);
    await until('both', async () => {
      const rows = (await wb.callStack()).join('\n');
      return /rank 0/.test(rows) && /rank 1/.test(rows);
    });
    await statusItem(wb, /rank \d · step [\d,]+/);
  });

  await station('a tensor compared with that of the other rank', async () => {
    await until('samples', async () => /μ \S+ σ/.test(await watchRow(wb, 'h').innerText()));
    await watchRow(wb, 'h').hover();
    await watchRow(wb, 'h').locator('[aria-label="Show Tensor"]').first().click();
    const page = await wb.webview('Tensor h');
    await until('its steps', async () => Number(await page.locator('#step').getAttribute('max')) > 3);
    await page.locator('#partner').click();
    await page.locator('#partner >> text=/the same in .*rank/ >> visible=true').first().click();
    await page
      .locator('#compared:visible #comparedTitle', { hasText: /Difference from .*rank \d.*, both at step [\d,]+/ })
      .waitFor();
    await until('how many differ', async () => /differ\s+\d/.test(await page.locator('#differences').innerText()));
  });

  await station('the end', async () => {
    fs.writeFileSync(path.join(ranks.folder, 'finish'), '');
    await wb.waitEnded();
  });
});
