import assert from 'node:assert/strict';
import * as vscode from 'vscode';
import { HoverExpressions, InlineValues } from '../../../extension/src/editor/inline';
import type { Tests } from './groups';
import { api, started, stoppedAt, trainFile, until } from './session';

export const editor: Tests = {
  'inline values: tensors by their summary, short locals by their value, nothing else': async () => {
    await stoppedAt(10);
    const { sessions } = await api();
    const document = await vscode.workspace.openTextDocument(trainFile());
    const view = new vscode.Range(0, 0, document.lineCount, 0);
    const stoppedLocation = new vscode.Range(9, 0, 9, 0);
    const token = new vscode.CancellationTokenSource().token;
    const values = await new InlineValues(sessions).provideInlineValues(document, view, { frameId: 1, stoppedLocation }, token);
    const texts = values.map((v) => [
      v.range.start.line + 1,
      (v as vscode.InlineValueText).text.replace(/-?\d+\.\d+(e-\d+)?/g, '…'),
    ]);
    assert.deepEqual(texts, [
      [7, 'step = 5'],
      [9, 'h: f32[4,3] μ … σ …'],
      [10, 'scores: f32[2,4,3] μ … σ …'],
      [10, 'h: f32[4,3] μ … σ …'],
    ]);
  },

  'a hover expression is the name under the mouse, only in our sessions': async () => {
    const document = await vscode.workspace.openTextDocument(trainFile());
    const at = new vscode.Position(9, 14);
    assert.equal(new HoverExpressions().provideEvaluatableExpression(document, at), undefined);
    await stoppedAt(10);
    assert.equal(new HoverExpressions().provideEvaluatableExpression(document, at)?.expression, 'h');
  },

  'a lens above the captured function says how it is fused': async () => {
    await stoppedAt(10);
    const lenses = await until('lenses', async () => {
      const found = await vscode.commands.executeCommand<vscode.CodeLens[]>('vscode.executeCodeLensProvider', trainFile());
      return found.some((l) => l.command?.command === 'dvm.program.open') ? found : undefined;
    });
    const [first, second] = lenses.map((l) => [l.range.start.line + 1, l.command?.title]);
    assert.deepEqual(first, [7, '2 areas · 5 instructions · 5 launches']);
    assert.deepEqual(second, [7, '⟲ 2 areas · 5 instructions · 5 launches · backward']);
  },

  'the language server shows shapes beside the source and problems in it': async () => {
    const { language } = await api();
    const folder = vscode.workspace.workspaceFolders?.[0]?.uri ?? assert.fail('no folder');
    const uri = vscode.Uri.joinPath(folder, 'shapes ü.py');
    const source = 'import dvm_core as dvm\n@dvm.jit\ndef f(x: "f32[B, 8]", w: "f32[8, 4]"):\n    h = x @ w\n    return w @ w\n';
    await vscode.workspace.fs.writeFile(uri, new TextEncoder().encode(source));
    const settings = vscode.workspace.getConfiguration('dvm');
    await settings.update('python', process.env['DVM_TEST_PYTHON'], vscode.ConfigurationTarget.Workspace);
    await vscode.window.showTextDocument(uri);
    await until('the language server', () => language.running);
    const whole = new vscode.Range(0, 0, 9, 0);
    const hints = await until('hints', async () => {
      const found = await vscode.commands.executeCommand<vscode.InlayHint[]>('vscode.executeInlayHintProvider', uri, whole);
      return found.length ? found : undefined;
    });
    assert.deepEqual(
      hints.map((h) => [h.position.line, h.position.character, h.label]),
      [[3, 5, ': f32[B,4]']],
    );
    const [problem] = await until('problems', () => {
      const found = vscode.languages.getDiagnostics(uri);
      return found.length ? found : undefined;
    });
    assert.equal(problem?.source, 'dvm');
    assert.match(problem.message, /4 columns, the right side 8 rows/);
    const actions = await vscode.commands.executeCommand<vscode.Command[]>(
      'vscode.executeCodeActionProvider',
      uri,
      new vscode.Range(3, 4, 3, 4),
    );
    assert.ok(actions.some((a) => a.title === 'Watch h'));
    await vscode.commands.executeCommand('dvm.breakOnNotFinite', uri.fsPath, 4, 'h');
    const [breakpoint] = vscode.debug.breakpoints as vscode.SourceBreakpoint[];
    assert.deepEqual([breakpoint?.location.range.start.line, breakpoint?.condition], [4, 'not isfinite(h).all()']);
    vscode.debug.removeBreakpoints(vscode.debug.breakpoints);
    await vscode.commands.executeCommand('workbench.action.closeActiveEditor');
    await settings.update('python', undefined, vscode.ConfigurationTarget.Workspace);
  },

  'the run state follows stops and continues': async () => {
    const { sessions } = await api();
    const session = await stoppedAt(10);
    assert.equal(sessions.isStopped(session), true);
    vscode.debug.removeBreakpoints(vscode.debug.breakpoints);
    await vscode.commands.executeCommand('workbench.action.debug.continue');
    await until('running', () => !sessions.isStopped(session));
  },

  'requests without a session say what to do': async () => {
    const { sessions } = await api();
    await assert.rejects(sessions.request('dvm/status'), /no DVM debug session is running: start one/);
    await started();
    assert.equal((await sessions.request<{ device: string }>('dvm/status')).device, 'cpu');
  },
};
