import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import * as vscode from 'vscode';
import { adapterEnvironment, adapterPython } from '../../../extension/src/launch/adapter';
import { applyEnvFile, ConfigurationProvider, problemOf, readyMade } from '../../../extension/src/launch/configuration';
import { findInterpreter, localEnvironment, probe } from '../../../extension/src/launch/interpreter';
import { parseProcesses } from '../../../extension/src/launch/process';
import type { Tests } from './groups';
import { folder, trainFile } from './session';

const config = (more: object): vscode.DebugConfiguration => ({ type: 'dvm', name: 'x', request: 'launch', ...more });

export const launch: Tests = {
  'a configuration that cannot start says why': async () => {
    assert.match(problemOf(config({})) ?? '', /nothing to run/);
    assert.match(problemOf(config({ program: '/no/such.py' })) ?? '', /there is no file \/no\/such\.py/);
    assert.match(problemOf(config({ request: 'attach' })) ?? '', /names no target/);
    assert.match(problemOf(config({ request: 'run' })) ?? '', /"run"/);
    assert.equal(problemOf(config({ module: 'train' })), undefined);
    assert.equal(problemOf(config({ request: 'attach', connect: { port: 1 } })), undefined);
  },

  'F5 without launch.json takes the file in the editor': async () => {
    await vscode.window.showTextDocument(trainFile());
    const provider = new ConfigurationProvider();
    const resolved = await provider.resolveDebugConfiguration(folder(), {} as vscode.DebugConfiguration);
    assert.deepEqual([resolved?.type, resolved?.program], ['dvm', '${file}']);
  },

  'what is offered without launch.json can start': async () => {
    const offered = (await readyMade.provideDebugConfigurations?.(folder())) ?? [];
    const started = offered.map((c) => ({ ...c, ...(c['program'] ? { program: trainFile().fsPath } : {}) }));
    assert.deepEqual(started.map(problemOf).filter(Boolean), []);
    const ranks = offered.find((c) => c['module'] === 'torch.distributed.run');
    assert.ok(ranks?.['args'].includes('${file}'));
  },

  'an env file joins env, which wins; a missing default one is no error': async () => {
    const dir = mkdtempSync(path.join(tmpdir(), 'dvm env '));
    try {
      writeFileSync(path.join(dir, 'x.env'), 'A=1\nB=2\n');
      const c = config({ envFile: path.join(dir, 'x.env'), env: { B: '3' } });
      applyEnvFile(c);
      assert.deepEqual(c['env'], { A: '1', B: '3' });
      applyEnvFile(config({ envFile: path.join(dir, '.env') }));
      assert.throws(() => applyEnvFile(config({ envFile: path.join(dir, 'y.env') })), /ENOENT/);
    } finally {
      rmSync(dir, { recursive: true });
    }
  },

  'the interpreter is the setting, else the .venv at or above the workspace': async () => {
    const settings = vscode.workspace.getConfiguration('dvm');
    await settings.update('python', '${workspaceFolder}/bin/python', vscode.ConfigurationTarget.Global);
    const named = await findInterpreter(folder());
    assert.deepEqual(named, { path: path.join(folder().uri.fsPath, 'bin/python'), origin: 'the setting dvm.python' });
    await settings.update('python', undefined, vscode.ConfigurationTarget.Global);
    const dir = mkdtempSync(path.join(tmpdir(), 'dvm venv '));
    try {
      mkdirSync(path.join(dir, '.venv/bin'), { recursive: true });
      writeFileSync(path.join(dir, '.venv/bin/python'), '');
      mkdirSync(path.join(dir, 'a/b'), { recursive: true });
      assert.equal(localEnvironment(path.join(dir, 'a/b')), path.join(dir, '.venv/bin/python'));
    } finally {
      rmSync(dir, { recursive: true });
    }
  },

  'an interpreter is asked for its version and packages; one that is missing is named': async () => {
    const answer = await probe(process.env['DVM_TEST_PYTHON'] ?? 'python3');
    assert.equal(answer.version[0], 3);
    assert.equal(typeof answer.dvm_core, 'boolean');
    await assert.rejects(
      probe('/no/such/python'),
      /cannot run the Python interpreter \/no\/such\/python: there is no such program/,
    );
  },

  'the adapter is the bundled one, run by the configured interpreter': async () => {
    assert.equal(adapterPython(config({ python: ['/p/python', '-X', 'dev'] })), '/p/python');
    assert.equal(adapterPython(config({ python: '/p/python', debugAdapterPython: '/q/python' })), '/q/python');
    assert.equal(adapterPython(config({})), undefined);
    process.env['PYTHONPATH'] = '/mine';
    assert.equal(adapterEnvironment('/ext')['PYTHONPATH'], `/ext/adapter${path.delimiter}/mine`);
    delete process.env['PYTHONPATH'];
    assert.equal(adapterEnvironment('/ext')['PYTHONPATH'], '/ext/adapter');
    assert.equal(adapterEnvironment('/ext')['DVM_BUNDLED'], '/ext/adapter');
  },

  'the process list has Python programs, newest first, without our own adapters': async () => {
    const text =
      '  10 python3 python3 train.py --lr 1\n  11 bash bash\n  12 python -m python -m dvm_adapter\n  13 python3.11 /v/bin/python3.11 -m serve\n';
    assert.deepEqual(
      parseProcesses(text).map((p) => [p.pid, p.command]),
      [
        [13, '/v/bin/python3.11 -m serve'],
        [10, 'python3 train.py --lr 1'],
      ],
    );
  },
};
