// Runs the extension host tests: the unpacked extension in a real workbench, debugging the stand-in adapter.
// usage: node tests/vscode/host.mjs [DIR]      DIR: where kit/setup.sh installed the workbench (default build/vscode)
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { runExtensionTests, startServer } from './kit/server.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));
const root = path.resolve(here, '../..');
const dir = path.resolve(process.argv[2] ?? path.join(root, 'build/vscode'));
// A folder name as users have them: every path goes through quoting once.
const scratch = mkdtempSync(path.join(tmpdir(), "dvm host & test's ü "));
const folder = path.join(scratch, 'work space');
cpSync(path.join(here, 'workspace'), folder, { recursive: true });

const srv = await startServer({ dir, folder, env: { DVM_TESTS: here } });
try {
  const tests = path.join(root, 'build/exttest/host.js');
  const { code, log } = await runExtensionTests({ srv, dir, extension: root, tests, folder, timeout: 240_000 });
  const lines = log.flatMap((l) => (/\[host-test\] (.*)/.exec(l) ?? []).slice(1));
  console.log(lines.join('\n'));
  const passed = lines.filter((l) => l.startsWith('ok ')).length;
  if (code !== 0 || !passed)
    console.log(
      log
        .filter((l) => /error|timed out/i.test(l))
        .slice(-20)
        .join('\n'),
    );
  console.log(`extension host: ${passed} passed, ${lines.filter((l) => l.startsWith('not ok ')).length} failed`);
  process.exitCode = code === 0 && passed > 0 ? 0 : 1;
} finally {
  await srv.stop();
  rmSync(scratch, { recursive: true, force: true });
}
