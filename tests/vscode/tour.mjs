// One tour through the workbench: a server and a browser of its own, stations that each end in a screenshot, and what must hold at its end.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { root } from './digits.mjs';
import { openWorkbench, startServer } from './kit/server.mjs';
import { until } from './kit/until.mjs';

/** Where the workbench is and the package under test, from the command line: DIR EXT.vsix. */
export const [dir = path.join(root, 'build/vscode'), vsix = path.join(root, 'build/dvm-live.vsix')] = process.argv
  .slice(2)
  .map((a) => path.resolve(a));
const plain = JSON.parse(fs.readFileSync(path.join(root, 'tests/vscode/kit/settings.json'), 'utf8'));

/** A throw-away folder with these files, in which `.venv` leads to the repository's. */
export function scratchWorkspace(files) {
  const parent = fs.mkdtempSync(path.join(tmpdir(), 'dvm-tour-'));
  const folder = path.join(parent, 'work');
  for (const [name, text] of Object.entries(files)) {
    fs.mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
    fs.writeFileSync(path.join(folder, name), text);
  }
  fs.symlinkSync(path.join(root, '.venv'), path.join(folder, '.venv'));
  return { folder, remove: () => fs.rmSync(parent, { recursive: true, force: true }) };
}

/** Runs `work` with { wb, station }; `settings` are the user's besides those of all tests. A failure sets the exit code. */
export async function tour(name, { folder, remove, settings = {}, language, env: more = {} }, work) {
  const shots = path.join(root, 'build/screenshots', name);
  fs.rmSync(shots, { recursive: true, force: true });
  fs.mkdirSync(shots, { recursive: true });
  const scratch = fs.mkdtempSync(path.join(tmpdir(), 'dvm-tour-'));
  const env = { DVM_CACHE: path.join(scratch, 'cache'), SETTINGS: path.join(scratch, 'settings.json'), ...more };
  fs.writeFileSync(env.SETTINGS, JSON.stringify({ ...plain, ...settings }));
  let done = 0;
  let srv, wb;
  try {
    srv = await startServer({ dir, folder, vsix: [vsix], log: path.join(shots, 'server.log'), env });
    wb = await openWorkbench({ dir, url: srv.url, width: 1500, height: 940, language });
    let last = Date.now();
    const station = async (title, visit) => {
      await visit();
      await wb.screenshot(path.join(shots, `${String(done + 1).padStart(2, '0')}-${title.replaceAll(' ', '-')}.png`));
      done++;
      console.log(`ok ${name}: ${title} (${((Date.now() - last) / 1000).toFixed(1)} s)`);
      last = Date.now();
    };
    await work({ wb, station });
    assert.deepEqual(wb.extensionErrors(), [], 'errors in the workbench');
    assert.deepEqual(hostErrors(srv.state), [], 'errors in the log of the extension host');
    console.log(`${name}: ${done} stations passed`);
  } catch (error) {
    console.log(`not ok ${name}: station ${done + 1}\n${error.stack}`);
    await wb?.screenshot(path.join(shots, 'failure.png')).catch(() => {});
    fs.writeFileSync(path.join(shots, 'console.log'), (wb?.console ?? []).join('\n'));
    process.exitCode = 1;
  } finally {
    await wb?.close();
    await srv?.stop();
    remove?.();
    fs.rmSync(scratch, { recursive: true, force: true });
  }
}

/** Lines of the extension host's own log that report an error; what the built-in extensions lack in other languages is none of ours. */
function hostErrors(state) {
  const logs = fs
    .readdirSync(state, { recursive: true, encoding: 'utf8' })
    .filter((f) => /exthost[^/]*\/remoteexthost\.log$/.test(f));
  assert.ok(logs.length, `no log of the extension host below ${state}`);
  return logs
    .flatMap((f) => fs.readFileSync(path.join(state, f), 'utf8').split('\n'))
    .filter((l) => / \[error\] /.test(l) && !/extension vscode\./.test(l));
}

/** The first status bar item that matches. */
export const statusItem = (wb, pattern) =>
  until(`status bar ${pattern}`, async () => (await wb.statusBar()).find((s) => pattern.test(s)));
