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
    await vscode.commands.executeCommand('dvm.reload.undo');
    await until('the undo', async () => (await page()).startsWith('# Hot reload: undone'));
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
