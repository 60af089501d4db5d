import assert from 'node:assert/strict';
import * as vscode from 'vscode';
import type { Tests } from './groups';
import { stoppedAt, trainFile, until } from './session';

const tabs = (): string[] => vscode.window.tabGroups.all.flatMap((g) => g.tabs.map((t) => t.label));

export const views: Tests = {
  'a program opens as a read-only listing whose lines lead to the source': async () => {
    await stoppedAt(10);
    await vscode.commands.executeCommand('dvm.program.open', 1, 'Net.construct', 'tile');
    const document = await until('the listing', () => vscode.workspace.textDocuments.find((d) => d.uri.scheme === 'dvm-program'));
    assert.equal(document.languageId, 'dvm-listing');
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
};
