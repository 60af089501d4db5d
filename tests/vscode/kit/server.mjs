// Starts code-server (VS Code's workbench in a browser) and a Chromium that shows it; removes both and their files, whatever happens.
import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { createWriteStream, existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import net from 'node:net';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { Workbench } from './workbench.mjs';
import { PATIENCE, sleep, until } from './until.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));
const CHROMIUM =
  process.env.CHROMIUM ??
  ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find((p) => existsSync(p)) ??
  'chromium';

export const freePort = () =>
  new Promise((res, rej) => {
    const s = net
      .createServer()
      .once('error', rej)
      .listen(0, '127.0.0.1', () => {
        const { port } = s.address();
        s.close(() => res(port));
      });
  });

// A run that is interrupted must not leave servers or directories behind.
const groups = new Set(),
  temps = new Set();
const tempDir = (prefix) => {
  const d = mkdtempSync(path.join(tmpdir(), prefix));
  temps.add(d);
  return d;
};
const removeTemp = (d) => {
  try {
    rmSync(d, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
    temps.delete(d);
  } catch {
    /* still in use */
  }
};
const killGroup = (pid, sig) => {
  try {
    process.kill(-pid, sig);
  } catch {
    /* all gone */
  }
};
process.on('exit', () => {
  groups.forEach((pid) => killGroup(pid, 'SIGKILL'));
  temps.forEach(removeTemp);
});
for (const sig of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(sig, () => process.exit(1));

/** Starts serve.sh and waits for it. state defaults to a fresh temp directory.
 *  env reaches the extension host, hence the debug adapter. */
export async function startServer({ dir, port, state, folder, vsix = [], env = {}, log }) {
  port ??= await freePort();
  const temp = state ? undefined : (state = tempDir('vsc-state-'));
  mkdirSync(state, { recursive: true });
  // Its own process group: stopping takes the extension host and adapters too.
  const child = spawn('bash', [path.join(here, 'serve.sh'), dir, String(port), state, folder, ...vsix], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  groups.add(child.pid);
  const sink = createWriteStream(log ?? path.join(state, 'server.log'));
  let tail = '';
  const keep = (b) => {
    sink.write(b);
    tail = (tail + b).slice(-4000);
  };
  child.stdout.on('data', keep);
  child.stderr.on('data', keep);
  let gone = false;
  const exited = new Promise((r) =>
    child.on('exit', () => {
      gone = true;
      r();
    }),
  );
  const url = `http://127.0.0.1:${port}/`;
  const stop = async () => {
    killGroup(child.pid, 'SIGTERM');
    await Promise.race([exited, sleep(5000)]);
    killGroup(child.pid, 'SIGKILL');
    groups.delete(child.pid);
    if (temp) removeTemp(temp);
  };
  try {
    await until(
      'code-server',
      async () => {
        if (gone) throw new Error('code-server exited:\n' + tail);
        return (await fetch(url + 'healthz')).ok;
      },
      60000,
    );
  } catch (e) {
    await stop();
    throw e;
  }
  return { url, port, state, pid: child.pid, stop };
}

async function launch({ dir, headless = true, width = 1440, height = 900, executablePath = CHROMIUM }) {
  const require = createRequire(path.join(path.resolve(dir), 'package.json'));
  const { chromium } = require('playwright-core');
  const profile = tempDir('vsc-chrome-');
  const context = await chromium.launchPersistentContext(profile, {
    executablePath,
    headless,
    viewport: { width, height },
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  });
  const page = context.pages()[0] ?? (await context.newPage());
  page.setDefaultTimeout(PATIENCE);
  return new Workbench(page, context, () => removeTemp(profile));
}

/** Launches chromium with a fresh profile and waits for the workbench. */
export async function openWorkbench({ url, language, ...browser }) {
  const wb = await launch(browser);
  const { page } = wb;
  // The workbench's own texts would come with a language pack; what it tells extensions of the language is this.
  if (language)
    await page.addInitScript((tag) => {
      Object.defineProperty(globalThis, '_VSCODE_NLS_LANGUAGE', { get: () => tag, set: () => {} });
    }, language);
  try {
    await page.goto(url);
    await page.locator('.monaco-workbench .statusbar').waitFor({ timeout: 60000 });
    // The explorer lists files once the remote file system answers.
    await page.locator('.explorer-folders-view .monaco-list-row').first().waitFor({ timeout: 60000 });
  } catch (e) {
    await wb.close();
    throw e;
  }
  return wb;
}

/** Runs tests inside the extension host, as @vscode/test-electron would:
 *  `tests` is a module exporting run(); `extension` an unpacked extension
 *  (loaded as is, no .vsix). Gives { code, log }; code 0 is a pass. */
export async function runExtensionTests({ srv, extension, tests, folder, timeout = 120000, ...browser }) {
  const wb = await launch(browser);
  try {
    let code;
    const log = [];
    // The workbench reports through these two globals when extensionTestsPath is set.
    await wb.page.exposeFunction('codeAutomationExit', (c) => {
      code = c;
    });
    await wb.page.exposeFunction('codeAutomationLog', (type, args) => {
      log.push(`${type}: ${args.map(String).join(' ')}`);
    });
    const remote = (p) => `vscode-remote://127.0.0.1:${srv.port}${path.resolve(p)}`;
    const payload = JSON.stringify([
      ['extensionDevelopmentPath', remote(extension)],
      ['extensionTestsPath', remote(tests)],
    ]);
    await wb.page.goto(`${srv.url}?${new URLSearchParams({ folder: path.resolve(folder), payload })}`);
    await until('the extension tests to end', () => code !== undefined, timeout).catch((e) => {
      code = -1;
      log.push(e.message);
    });
    return { code, log };
  } finally {
    await wb.close();
  }
}
