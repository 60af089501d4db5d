import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import * as vscode from 'vscode';
import type { Tests } from './groups';
import { started, stoppedAt, trainFile, until } from './session';

const PAGE = vscode.Uri.parse('dvm-reload:/Hot%20Reload.md');
const page = async (): Promise<string> => (await vscode.workspace.openTextDocument(PAGE)).getText();

/** Runs `work` with train.py changed on disk, and puts the file back. */
async function edited(change: (text: string) => string, work: () => Promise<void>): Promise<void> {
  const file = trainFile().fsPath;
  const before = readFileSync(file, 'utf8');
  try {
    writeFileSync(file, change(before));
    await work();
  } finally {
    writeFileSync(file, before);
  }
}

const problems = (): vscode.Diagnostic[] => vscode.languages.getDiagnostics(trainFile()).filter((d) => d.source === 'DVM');

export const reload: Tests = {
  'Reload Now reports what was applied, and Undo takes it back': async () => {
    await stoppedAt(10);
    await vscode.window.showTextDocument(trainFile());
    await vscode.commands.executeCommand('dvm.reload');
    await until('the report', async () => /# Hot reload: applied[^]*3 of 41 instructions patched/.test(await page()));
    assert.match(await page(), /\| train_step \| constant \| 0\.1 \| 0\.2 \|/);
    assert.deepEqual(problems(), []);
    await vscode.commands.executeCommand('dvm.reload.diff');
    const tab = await until('the diff', () => vscode.window.tabGroups.activeTabGroup.activeTab);
    assert.equal(tab.label.replace(/[\d,]+/, 'N'), 'train_step: before and since step N');
    assert.ok(tab.input instanceof vscode.TabInputTextDiff);
    const now = await vscode.workspace.openTextDocument(tab.input.modified);
    assert.deepEqual([now.getText(), now.languageId], ['%i0 = input f32[4,3]\n%1 = EXP(%i0)\n', 'dvm-asm']);
    await vscode.commands.executeCommand('dvm.reload.undo');
    await until('the undo', async () => (await page()).startsWith('# Hot reload: undone'));
  },

  'changed lines say since when they are in force, until that is undone': async () => {
    await started();
    const document = await vscode.workspace.openTextDocument(trainFile());
    await vscode.window.showTextDocument(document);
    const lenses = async (): Promise<[number, string][]> =>
      (await vscode.commands.executeCommand<vscode.CodeLens[]>('vscode.executeCodeLensProvider', document.uri))
        .filter((l) => l.command?.command.startsWith('dvm.reload'))
        .map((l) => [l.range.start.line, l.command?.title.replace(/[\d,]+/, 'N') ?? '']);
    await vscode.commands.executeCommand('dvm.reload');
    assert.deepEqual(await lenses(), []);
    const change = (text: string): string => text.replace('# the breakpoint of the tests', '# another comment');
    await edited(change, async () => {
      await vscode.commands.executeCommand('dvm.reload');
      const expected = [[9, '$(zap) in force since step N'], [9, 'what changed'], [9, 'undo']]; // prettier-ignore
      await until('the lenses', async () => (await lenses()).length === 3);
      assert.deepEqual(await lenses(), expected);
      await vscode.commands.executeCommand('dvm.reload.undo');
      await until('the lenses to go', async () => !(await lenses()).length);
    });
  },

  'a refusal is a problem at the line it names, until the next reload': async () => {
    await started();
    await vscode.window.showTextDocument(trainFile());
    const change = (text: string): string => text.replace('# the breakpoint of the tests', '# REFUSE');
    await edited(change, async () => {
      await vscode.commands.executeCommand('dvm.reload');
      const [problem] = await until('the problem', () => (problems().length ? problems() : undefined));
      assert.equal(problem?.range.start.line, 9);
      assert.match(problem?.message ?? '', /Hot reload refused: .*would change from \[4, 3\] to \[4, 5\]/);
      await until('the page', async () => /runs on with the code it had/.test(await page()));
    });
    await vscode.commands.executeCommand('dvm.reload');
    await until('the problem to go', () => problems().length === 0);
  },
};
