// The digits example in a throw-away folder with a launch configuration, for the tests and pictures that edit and run it.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');

/** Copies the example; `lineOf(file, text)` finds a line of it, `remove()` takes it away. The copy trains until `finish()`, however fast
 *  the machine is: what a person does at a stop takes as long as it takes. */
export function digitsWorkspace() {
  const parent = fs.mkdtempSync(path.join(tmpdir(), 'dvm-e2e-'));
  const folder = path.join(parent, 'digits');
  fs.cpSync(path.join(root, 'examples/digits'), folder, { recursive: true });
  fs.mkdirSync(path.join(folder, '.vscode'), { recursive: true });
  const configuration = {
    name: 'DVM: digits',
    type: 'dvm',
    request: 'launch',
    program: '${workspaceFolder}/train.py',
    args: ['--steps', '1000000'],
    python: path.join(root, '.venv/bin/python'),
    // MindSpore's notes on deprecated names would cover the program's own output.
    env: { GLOG_v: '3' },
  };
  fs.writeFileSync(
    path.join(folder, '.vscode/launch.json'),
    JSON.stringify({ version: '0.2.0', configurations: [configuration] }),
  );
  const settings = { 'dvm.python': configuration.python }; // for the language server
  fs.writeFileSync(path.join(folder, '.vscode/settings.json'), JSON.stringify(settings));
  const mark = path.join(folder, 'finish');
  const script = path.join(folder, 'train.py');
  const step = '        losses.append(float(loss))\n';
  const text = fs.readFileSync(script, 'utf8');
  assert.ok(text.includes(step), 'train.py has another loop');
  const check = `        if __import__("os").path.exists(${JSON.stringify(mark)}):\n            break\n`;
  fs.writeFileSync(script, text.replace(step, step + check));
  const lineOf = (file, text) => {
    const at = fs
      .readFileSync(path.join(folder, file), 'utf8')
      .split('\n')
      .findIndex((l) => l.includes(text));
    assert.ok(at >= 0, `${file} has no line with ${text}`);
    return at + 1;
  };
  const finish = () => fs.writeFileSync(mark, '');
  return { folder, lineOf, finish, remove: () => fs.rmSync(parent, { recursive: true, force: true }) };
}
