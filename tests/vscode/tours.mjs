// Runs the tours through the workbench, each in a process of its own, and says which of them do not pass every time.
// usage: node tests/vscode/tours.mjs DIR EXT.vsix [--times N] [NAME ...]      NAME: training, first, stops, looks, files, watch, tiles (default: all)
// Screenshots of every station are kept in build/screenshots; those of a run that failed in build/screenshots/failed.
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { root } from './digits.mjs';

const TOURS = {
  training: 'e2e.mjs',
  first: 'tours/first.mjs',
  stops: 'tours/stops.mjs',
  looks: 'tours/looks.mjs',
  files: 'tours/files.mjs',
  watch: 'tours/watch.mjs',
  tiles: 'tours/tiles.mjs',
};
const words = process.argv.slice(2);
const at = words.indexOf('--times');
const [, text = '1'] = at < 0 ? [] : words.splice(at, 2);
const [dir, vsix, ...wanted] = words;
const times = Number(text);
const names = wanted.length ? wanted : Object.keys(TOURS);
const unknown = names.filter((name) => !(name in TOURS));
if (!dir || !vsix || !Number.isInteger(times) || times < 1 || unknown.length) {
  console.error(`usage: tours.mjs DIR EXT.vsix [--times N] [${Object.keys(TOURS).join(' | ')} ...]`);
  process.exit(2);
}

const run = (name) =>
  new Promise((resolve) => {
    const script = path.join(root, 'tests/vscode', TOURS[name]);
    spawn(process.execPath, [script, dir, vsix], { stdio: 'inherit' }).once('exit', (code) => resolve(code === 0));
  });

const shots = path.join(root, 'build/screenshots');
const failed = path.join(shots, 'failed');
fs.rmSync(shots, { recursive: true, force: true });
const failures = new Map(names.map((name) => [name, 0]));
const start = Date.now();
for (let round = 1; round <= times; round++)
  for (const name of names) {
    if (await run(name)) continue;
    failures.set(name, failures.get(name) + 1);
    const kept = path.join(failed, `${name}-${round}`);
    fs.mkdirSync(kept, { recursive: true });
    for (const entry of fs.readdirSync(shots)) {
      if (entry !== 'failed') fs.cpSync(path.join(shots, entry), path.join(kept, entry), { recursive: true });
    }
  }
for (const [name, n] of failures) console.log(`${name}: ${times - n} of ${times} runs passed${n && n < times ? ' (flaky)' : ''}`);
console.log(`${((Date.now() - start) / 1000).toFixed(0)} s`);
process.exitCode = [...failures.values()].some(Boolean) ? 1 : 0;
