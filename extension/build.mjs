// Bundles the extension, its webviews and (with --tests) the tests that run in Node and in the extension host.
import { build, context } from 'esbuild';
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const has = (flag) => process.argv.includes(flag);
const common = {
  absWorkingDir: root,
  bundle: true,
  sourcemap: has('--watch') || has('--tests'),
  minify: !has('--watch'),
  logLevel: 'warning',
};
const node = { ...common, platform: 'node', format: 'cjs', target: 'node20', external: ['vscode', '@vscode/l10n-dev'] };

const bundles = [
  { ...node, entryPoints: ['extension/src/extension.ts'], outfile: 'extension/dist/extension.js' },
  {
    ...common,
    platform: 'browser',
    format: 'iife',
    target: 'es2022',
    entryPoints: ['tensor', 'memory', 'msbc'].flatMap((name) => ['ts', 'css'].map((kind) => `extension/webview/${name}.${kind}`)),
    outdir: 'extension/dist',
  },
];
if (has('--tests')) {
  const units = readdirSync(path.join(root, 'tests/vscode/unit')).filter((f) => f.endsWith('.test.ts'));
  bundles.push({ ...node, minify: false, entryPoints: units.map((f) => `tests/vscode/unit/${f}`), outdir: 'build/exttest/unit' });
  bundles.push({ ...node, minify: false, entryPoints: ['tests/vscode/host/index.ts'], outfile: 'build/exttest/host.js' });
}

if (has('--watch')) for (const b of bundles) await (await context(b)).watch();
else await Promise.all(bundles.map((b) => build(b)));
