import assert from 'node:assert/strict';
import * as vscode from 'vscode';
import type { Tests } from './groups';
import { api, started, stoppedAt, trainFile, until } from './session';

const tabs = (): string[] => vscode.window.tabGroups.all.flatMap((g) => g.tabs.map((t) => t.label));

export const views: Tests = {
  'a program opens as a read-only listing whose lines lead to the source': async () => {
    await stoppedAt(10);
    await vscode.commands.executeCommand('dvm.program.open', 1, 'Net.construct', 'tile');
    const document = await until('the listing', () =>
      vscode.workspace.textDocuments.find((d) => /^dvm-program:.*tile/.test(d.uri.toString())),
    );
    assert.equal(document.languageId, 'dvm-asm');
    assert.match(document.getText(), /^program 1 level tile\n%0 = LOAD x/);
    const at = new vscode.Position(3, 2);
    const [place] = await vscode.commands.executeCommand<vscode.Location[]>('vscode.executeDefinitionProvider', document.uri, at);
    assert.deepEqual([place?.uri.fsPath, place?.range.start.line], [trainFile().fsPath, 8]);
    const lenses = await vscode.commands.executeCommand<vscode.CodeLens[]>('vscode.executeCodeLensProvider', document.uri);
    assert.deepEqual(
      lenses.map((l) => l.command?.title),
      ['graph', 'tensor', '$(check) tile'],
    );
  },

  'the memory view opens once and is drawn anew at the next stop': async () => {
    await stoppedAt(10);
    await vscode.commands.executeCommand('dvm.memory');
    await vscode.commands.executeCommand('dvm.memory');
    assert.equal(tabs().filter((t) => t === 'Memory View').length, 1);
  },

  'a variable opens in a tensor page of its own': async () => {
    await stoppedAt(10);
    await vscode.commands.executeCommand('dvm.tensor.showVariable', { variable: { name: 'scores', evaluateName: 'scores' } });
    await until('the page', () => tabs().includes('Tensor scores'));
  },

  'a page of a watch has its values kept in the program, one of them at a time, until it is closed': async () => {
    const { sessions, watches } = await api();
    const key = await watches.add({ expression: 'h' });
    await started();
    type Asked = { what: string; keep?: number; name: string }[];
    const kept = async (): Promise<Asked> =>
      (await sessions.request<{ watches: Asked }>('dvm/status')).watches.filter((w) => w.keep);
    await vscode.commands.executeCommand('dvm.tensor.showWatch', key);
    await vscode.commands.executeCommand('dvm.tensor.showVariable', { variable: { name: 'h', evaluateName: 'h' } });
    await until('values', async () => (await kept()).length === 1);
    assert.deepEqual((await kept()).map((w) => [w.what, w.name]), [['values', 'h']]); // prettier-ignore
    assert.equal(tabs().filter((t) => t === 'Tensor h').length, 1);
    await vscode.commands.executeCommand('workbench.action.closeAllEditors');
    await until('values to be let go', async () => (await kept()).length === 0);
  },

  'an instruction’s result is watched in its session alone; one with a name as the variable it is': async () => {
    const { watches } = await api();
    await started();
    const add = (result: object): Thenable<string> => vscode.commands.executeCommand('dvm.watch.addResult', result);
    const key = await add({ program: 3, instruction: 7, name: '%7' });
    assert.equal(await add({ program: 3, instruction: 7, name: '%7' }), key);
    await add({ program: 3, instruction: 8, name: 'h', place: { path: trainFile().fsPath, line: 9 } });
    const [first, second] = watches.all();
    assert.deepEqual([first?.of?.program, first?.of?.instruction, first?.path], [3, 7, undefined]);
    assert.deepEqual([second?.of, second?.line], [undefined, 9]);
    await until('samples', () => watches.seriesOf(key)?.last);
  },
};
