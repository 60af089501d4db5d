// Makes the picture of README.md: stopped on a tensor line of the digits example, tensors watched, the bytecode beside the source.
// usage: node tests/vscode/screenshot.mjs DIR EXT.vsix OUT.png
import fs from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { digitsWorkspace, root } from './digits.mjs';
import { openWorkbench, startServer } from './kit/server.mjs';
import { sleep, until } from './kit/until.mjs';

const [dir, vsix, out] = process.argv.slice(2).map((a) => path.resolve(a));
const { folder, lineOf, remove } = digitsWorkspace();
const MODEL = 'model.py';
const line = lineOf(MODEL, 'mixed = weights @ v');

const settings = path.join(fs.mkdtempSync(path.join(tmpdir(), 'dvm-shot-')), 'settings.json');
const plain = JSON.parse(fs.readFileSync(path.join(root, 'tests/vscode/kit/settings.json'), 'utf8'));
const look = {
  'workbench.colorTheme': 'Default Dark Modern',
  'window.commandCenter': false,
  'breadcrumbs.enabled': false,
  'workbench.layoutControl.enabled': false,
};
fs.writeFileSync(settings, JSON.stringify({ ...plain, ...look }));

const srv = await startServer({ dir, folder, vsix: [vsix], env: { SETTINGS: settings } });
const wb = await openWorkbench({ dir, url: srv.url, width: 1560, height: 900 });
const { page } = wb;
const drag = async (from, to) => {
  await page.mouse.move(...from);
  await page.mouse.down();
  await page.mouse.move(...to, { steps: 6 });
  await page.mouse.up();
};
const collapse = async (title) => {
  const head = page
    .locator('.pane-header')
    .filter({ hasText: new RegExp(`^${title}`, 'i') })
    .first();
  if ((await head.count()) && (await head.getAttribute('aria-expanded')) === 'true') await head.click();
};
try {
  await wb.openFile(MODEL);
  await wb.gotoLine(line);
  await wb.command('View: Show Run and Debug');
  const side = await page.locator('#workbench\\.parts\\.sidebar').boundingBox();
  await drag([side.x + side.width, 400], [side.x + 500, 400]);
  for (const name of ['scores', 'weights', 'mixed']) {
    await wb.command('DVM: Watch a Tensor...');
    await wb.accept(name);
    await sleep(300);
  }
  await page.keyboard.press('F5');
  await sleep(500);
  await until('training', async () => (await wb.statusBar()).some((s) => /step [2-9]\d/.test(s)), 120_000);
  await wb.toggleBreakpoint(MODEL, line);
  await wb.waitStopped({ file: MODEL, line, timeout: 60_000 });
  await wb.command('View: Hide Panel').catch(() => {});
  for (const title of ['Watch', 'Loaded Scripts', 'Breakpoints']) await collapse(title);
  await wb.expandPane('Tensor Watch');
  await wb.expandVariable('Tensors');
  await wb.command('View: New Editor Group Below');
  await wb.openDisassembly();
  await sleep(1000);
  // The lower half took the stopped line out of sight.
  await page.mouse.move(1000, 250);
  await until('it again', async () => {
    await page.mouse.wheel(0, 40);
    await sleep(200);
    return (await wb.stoppedLine(MODEL)) === line;
  });
  await page.mouse.wheel(0, 60);
  await page.mouse.move(900, 880);
  await sleep(1500);
  await wb.screenshot(out);
  console.log(`${out}: ${(fs.statSync(out).size / 1024).toFixed(0)} KiB`);
} catch (error) {
  await wb.screenshot(out.replace('.png', '-failure.png'));
  throw error;
} finally {
  await wb.close();
  await srv.stop();
  remove();
  fs.rmSync(path.dirname(settings), { recursive: true, force: true });
}
