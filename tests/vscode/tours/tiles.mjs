// Inside a fused area: a breakpoint on an instruction of the Disassembly view, steps by tile instruction, what lies in local memory.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { root } from '../digits.mjs';
import { until } from '../kit/until.mjs';
import { scratchWorkspace, tour } from '../tour.mjs';

const SCRIPT = 'training.py';
const text = fs.readFileSync(path.join(root, 'tests/vscode/tours', SCRIPT), 'utf8');
const line = text.split('\n').findIndex((l) => l.includes('logs = ')) + 1;

const work = scratchWorkspace({ [SCRIPT]: text });
await tour('tiles', work, async ({ wb, station }) => {
  const current = async () => (await wb.disassembly()).find((row) => row.current);
  const inTile = (row) => row?.address?.startsWith('0x') && /^0x[0-9a-f]{8}[c-f]/i.test(row.address);

  await station('a stop at an instruction', async () => {
    await wb.openFile(SCRIPT);
    await wb.page.keyboard.press('F5');
    await until('steps', async () => (await wb.statusBar()).some((s) => /step [\d,]+/.test(s)));
    await wb.toggleBreakpoint(SCRIPT, line);
    await wb.waitStopped({ file: SCRIPT, line });
    await wb.openDisassembly();
    for (const op of [/= MATMUL/, /= LOG/]) {
      const row = await until(`${op}`, async () => (await wb.disassembly()).find((r) => op.test(r.text)));
      await wb.instructionGutterClick(row.address);
      await until('its breakpoint', async () => (await wb.disassembly()).find((r) => r.address === row.address)?.breakpoint);
    }
    await wb.openFile(SCRIPT);
    await wb.toggleBreakpoint(SCRIPT, line);
    await wb.command('Debug: Continue');
    await wb.page.locator('.pane-header', { hasText: 'Paused on tensor instruction' }).waitFor();
  });

  await station('into the fused area', async () => {
    await wb.command('DVM: Step by Tile Instruction');
    await until('the tile instruction', async () => inTile(await current()));
  });

  await station('one tile instruction on', async () => {
    const before = await current();
    await wb.command('DVM: Step by Tile Instruction');
    await until('the next', async () => {
      const now = await current();
      return inTile(now) && now.address !== before.address;
    });
    await wb.command('View: Show Run and Debug');
    await wb.expandVariable('Local memory');
    await until('what it holds', async () => (await wb.variables()).some((row) => /^(0x|g\d)/.test(row.name)));
  });

  await station('in the middle of the area', async () => {
    await wb.command('Debug: Continue');
    await until('the stop', async () => /= LOG/.test((await current())?.text));
    await wb.command('DVM: Step by Tile Instruction');
    await until('its tile instruction', async () => {
      const now = await current();
      return inTile(now) && /Log\.fp32/.test(now.text);
    });
  });

  await station('the end', async () => {
    fs.writeFileSync(path.join(work.folder, 'finish'), '');
    await wb.page.keyboard.press('Shift+F5');
    await wb.waitEnded();
    assert.ok(!(await wb.page.locator('.codicon-debug-continue:visible').count()));
  });
});
