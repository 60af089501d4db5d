// The whole product as a person uses it: VS Code's workbench, the packaged extension, the real adapter, a MindSpore model that trains.
// usage: node tests/vscode/e2e.mjs DIR EXT.vsix      DIR: where kit/setup.sh installed the workbench
// Screenshots of every station are kept in build/screenshots/training. All tours: tours.mjs.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { digitsWorkspace, root } from './digits.mjs';
import { openWorkbench, startServer } from './kit/server.mjs';
import { sleep, until } from './kit/until.mjs';

const [dir = path.join(root, 'build/vscode'), vsix = path.join(root, 'build/dvm-live.vsix')] = process.argv
  .slice(2)
  .map((a) => path.resolve(a));
const shots = path.join(root, 'build/screenshots/training');
const OTHER_PANES = ['Variables', 'Watch', 'Call Stack', 'Breakpoints', 'Tensor Watch'];
fs.rmSync(shots, { recursive: true, force: true });
fs.mkdirSync(shots, { recursive: true });
const { folder, lineOf, finish, remove } = digitsWorkspace();

const MODEL = 'model.py';
const TRAIN = 'train.py';
const line = lineOf(MODEL, 'scores = scores / ');
const stations = [];
let last = Date.now();
const cache = fs.mkdtempSync(path.join(tmpdir(), 'dvm-cache-')); // what runs keep for the language server
const srv = await startServer({ dir, folder, vsix: [vsix], log: path.join(shots, 'server.log'), env: { DVM_CACHE: cache } });
const wb = await openWorkbench({ dir, url: srv.url, width: 1500, height: 940 }).catch(async (e) => {
  await srv.stop();
  throw e;
});

/** One station of the tour: what it shows, then a screenshot. */
async function station(name, work) {
  await work();
  await wb.screenshot(path.join(shots, `${String(stations.length + 1).padStart(2, '0')}-${name.replaceAll(' ', '-')}.png`));
  stations.push(name);
  console.log(`ok ${name} (${((Date.now() - last) / 1000).toFixed(1)} s)`);
  last = Date.now();
}

const callStack = () =>
  wb.page
    .locator('.debug-call-stack .monaco-list-row')
    .evaluateAll((rows) => rows.map((r) => r.innerText.replace(/\s+/g, ' ').trim()));
const watchView = wb.page.locator('.pane').filter({ has: wb.page.locator('.pane-header', { hasText: /^Tensor Watch/i }) });
const watchRow = (name) => watchView.locator(`.monaco-list-row[aria-label^="${name},"]`).first();
const statusItem = (pattern) => until(`status bar ${pattern}`, async () => (await wb.statusBar()).find((s) => pattern.test(s)));

const painted = (page) =>
  page.evaluate(() => {
    const map = document.getElementById('map');
    return map
      .getContext('2d')
      .getImageData(0, 0, map.width, map.height)
      .data.some((v) => v);
  });

/** Whether the page's chart has anything on it besides its ground. */
const drawn = (page) =>
  page.evaluate(() => {
    const colours = new Set();
    for (const canvas of document.querySelectorAll('#chart canvas')) {
      const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
      for (let i = 0; i < data.length; i += 4)
        if (data[i + 3] > 200) colours.add((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]);
    }
    return colours.size > 3;
  });

try {
  await station('breakpoint in the gutter', async () => {
    await wb.openFile(MODEL);
    await wb.gotoLine(line);
    await wb.toggleBreakpoint(MODEL, line);
  });

  await station('stopped on a tensor line', async () => {
    await wb.page.keyboard.press('F5');
    await wb.waitStopped({ file: MODEL, line, timeout: 180_000 });
    const rows = await until('the call stack', async () => {
      const found = await callStack();
      return found.some((r) => r.includes('Python')) ? found : undefined;
    });
    const label = rows.findIndex((r) => r.includes('── Python ──'));
    const tensorFrame = rows[label - 1] ?? '';
    assert.match(tensorFrame, /scores = scores \//, `the tensor frame is not on top: ${rows.join(' | ')}`);
    assert.match(rows[label + 1] ?? '', /construct/, `no Python frame below the label: ${rows.join(' | ')}`);
  });

  await station('variables', async () => {
    await wb.expandVariable('Tensors');
    const q = await until('the tensor q', async () => (await wb.variables()).find((v) => v.name === 'q' && v.value));
    assert.match(q.value, /^f32\[32,4,8,16\]\s+min \S+\s+max \S+\s+mean \S+\s+std \S+/);
    await until('inline values', async () => /scores: f32\[32,4,8,8\] μ/.test(await wb.lineText(MODEL, line - 1)));
    await wb.expandVariable('q');
    const names = await until('the fixed children of q', async () => {
      const found = (await wb.variables()).map((v) => v.name);
      return found.includes('shape') && found.some((n) => n.startsWith('values')) ? found : undefined;
    });
    for (const name of ['shape', 'dtype', 'device', 'strides']) assert.ok(names.includes(name), `q has no ${name}: ${names}`);
  });

  await station('disassembly', async () => {
    await wb.openDisassembly();
    const rows = await until('instructions', async () => {
      const found = await wb.disassembly();
      return found.some((r) => /%\d+ = /.test(r.text)) ? found : undefined;
    });
    // The line is about to run: what came before it is recorded, up to the product it divides.
    const current = rows.findIndex((r) => r.current);
    assert.match(rows[current - 1]?.text ?? '', /MATMUL/, `before the current instruction: ${rows[current - 1]?.text}`);
  });
  await wb.command('View: Close Editor');

  await station('tensor watch', async () => {
    await wb.variableMenu('scores', 'Watch Tensor');
    await watchRow('scores').waitFor();
    for (let i = 0; i < 4; i++) {
      await wb.command('Debug: Continue');
      await sleep(300);
      await wb.waitStopped({ file: MODEL, line });
    }
    await until('samples in the watch row', async () =>
      /μ \S+ σ \S+\s+[▁▂▃▄▅▆▇█]+\s+f32\[\d+,4,8,8\]\s+step \d+/.test(await watchRow('scores').innerText()),
    );
  });

  await station('tensor page', async () => {
    await wb.variableMenu('scores', 'Show Tensor');
    const page = await wb.webview('Tensor scores');
    await page.locator('td').first().waitFor();
    await page.locator('#scale:has-text("8 rows, 8 columns")').waitFor();
    assert.ok(await painted(page), 'the heat map is empty');
  });
  await wb.command('View: Close Editor');

  await station('memory view', async () => {
    await wb.command('DVM: Open Memory View');
    const page = await wb.webview('Memory View');
    await page.locator('#facts:has-text("peak")').waitFor();
    await page.locator('#table .tabulator-row').first().waitFor();
    assert.ok(await drawn(page), 'the chart is empty');
  });

  await station('memory view by address, a buffer followed to its line', async () => {
    const page = await wb.webview('Memory View');
    await page.locator('#mode').click();
    await page.locator('#mode >> text="by address" >> visible=true').click();
    // Without the mouse: the first row that has a line.
    const row = page.locator('#table .tabulator-row', { hasText: `${MODEL}:` }).first();
    await row.focus();
    await wb.page.keyboard.press('Enter');
    await page.locator('#selected a', { hasText: `${MODEL}:` }).waitFor();
    assert.ok(await drawn(page), 'the chart is empty');
  });
  await station('the line that made the buffer', async () => {
    const page = await wb.webview('Memory View');
    const place = page.locator('#selected a', { hasText: `${MODEL}:` }).first();
    const target = Number((await place.innerText()).split(':').at(-1));
    await place.click();
    await until('the line', async () => (await wb.statusBar()).some((s) => s.includes(`Ln ${target},`)));
    await wb.command('View: Close Editor');
  });
  await wb.command('View: Close All Editors');

  await station('programs view, an area and its listing', async () => {
    for (const title of OTHER_PANES) await wb.expandPane(title, false);
    await wb.expandPane('Programs');
    const tree = wb.page.locator('.pane').filter({ has: wb.page.locator('.pane-header', { hasText: /^Programs/i }) });
    for (const level of [1, 2, 3]) {
      const row = tree.locator(`.monaco-list-row[aria-level="${level}"][aria-expanded="false"]`).first();
      await row.locator('.monaco-tl-twistie').click();
    }
    const reason = tree.locator('.monaco-list-row[aria-level="4"]', { hasText: 'ends here because' });
    await reason.waitFor();
    const area = tree.locator('.monaco-list-row[aria-level="3"][aria-expanded="true"]').first();
    await area.hover();
    await area.locator('.codicon-go-to-file').click();
    await wb.page.locator('.editor-instance .monaco-editor[data-uri^="dvm-program"] .view-line').first().waitFor();
  });
  await wb.expandPane('Programs', false);
  for (const title of OTHER_PANES) await wb.expandPane(title);
  await wb.command('View: Close All Editors');

  await station('program listing', async () => {
    await wb.command('DVM: Show Programs...');
    await wb.quickInput.locator('.monaco-list-row').first().waitFor();
    await wb.page.keyboard.press('Enter');
    await until('the levels', async () => (await wb.quickInput.innerText()).includes('tile'));
    await wb.page.keyboard.press('Enter');
    await wb.page.locator('.editor-instance .monaco-editor[data-uri^="dvm-program"] .view-line').first().waitFor();
  });
  await wb.command('View: Close Editor');

  await station('running again', async () => {
    await wb.openFile(MODEL);
    await wb.gotoLine(line);
    await wb.toggleBreakpoint(MODEL, line);
    await wb.command('Debug: Continue');
    const first = Number((await statusItem(/· step [\d,]+/)).replace(/.*step |,/g, ''));
    await until('steps to go on', async () => Number((await statusItem(/· step [\d,]+/)).replace(/.*step |,/g, '')) > first + 3);
    await until('the watch to follow', async () => /step [\d,]{2,}/.test(await watchRow('scores').innerText()));
  });

  await station('tensor page while running', async () => {
    await watchRow('scores').hover();
    await watchRow('scores').locator('[aria-label="Show Tensor"]').first().click();
    const page = await wb.webview('Tensor scores');
    const step = () => page.locator('#when').innerText();
    const first = await until('history', async () => (/step \d/.test(await step()) ? step() : undefined));
    await until('the history to go on', async () => (await step()) !== first);
    await until('live values in the heat map', () => painted(page));
  });
  await wb.command('View: Close Editor');

  await station('hot reload', async () => {
    // Past the warm-up, or the edited branch of the schedule would not be in use.
    const edited = lineOf(TRAIN, 'return PEAK * (0.1');
    await wb.openFile(TRAIN);
    await wb.gotoLine(edited, 'return '.length + 5);
    await wb.page.keyboard.type('0.5 * ');
    await wb.page.keyboard.press('Control+S');
    await statusItem(/applied at step [\d,]+ · \w+: now return 0\.5 \* PEAK[^·]* · \d+ of \d+ instructions? · /);
    assert.match(fs.readFileSync(path.join(folder, TRAIN), 'utf8'), /return 0\.5 \* PEAK \* \(0\.1/);
    await until('the mark of the line in force', async () => wb.page.locator('.monaco-editor .cdr[class*="ced-"]').count());
  });

  await station('refused', async () => {
    await wb.gotoLine(lineOf(TRAIN, 'logits = model(x)'), 'logits = model(x'.length + 9);
    await wb.page.keyboard.press('Delete');
    await wb.page.keyboard.press('Control+S');
    await statusItem(/^refused: /);
    await until('the problem in the editor', async () => wb.page.locator('.monaco-editor .squiggly-warning').count());
  });

  await station('mended', async () => {
    await wb.page.keyboard.type(')');
    await wb.page.keyboard.press('Control+S');
    await statusItem(/applied|no change/);
  });

  await station('the end', async () => {
    finish();
    await wb.waitEnded();
  });

  await station('shapes of the last run beside the source', async () => {
    const source = wb.editor(TRAIN).locator('.view-lines');
    await until('inlay hints', async () => /loss\s*:\s*f32\[\]/.test(await source.innerText()));
    await until('times', async () => /a launch · [\d,]+ launches/.test(await wb.editor(TRAIN).innerText()));
  });
  assert.deepEqual(wb.extensionErrors(), []);
  console.log(`workbench: ${stations.length} stations passed`);
} catch (error) {
  console.log(`not ok station ${stations.length + 1}\n${error.stack}`);
  await wb.screenshot(path.join(shots, 'failure.png')).catch(() => {});
  fs.writeFileSync(path.join(shots, 'console.log'), wb.console.join('\n'));
  process.exitCode = 1;
} finally {
  await wb.close();
  await srv.stop();
  remove();
  fs.rmSync(cache, { recursive: true, force: true });
}
