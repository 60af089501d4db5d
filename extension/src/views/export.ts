// Writes what the adapter can export to a file the user chooses.
import path from 'node:path';
import * as l10n from '@vscode/l10n';
import * as vscode from 'vscode';
import type { Sessions } from '../sessions';
import { bytes } from '../text';

interface Format extends vscode.QuickPickItem {
  format: 'torch-snapshot' | 'perfetto' | 'msbc' | 'npy';
  extension: string;
}

const FORMATS: Format[] = [
  { label: l10n.t('Memory, for PyTorch’s memory viewer'), format: 'torch-snapshot', extension: 'pickle', description: '.pickle' },
  { label: l10n.t('Trace, for Perfetto'), format: 'perfetto', extension: 'json', description: '.json' },
  { label: l10n.t('A program’s bytecode'), format: 'msbc', extension: 'msbc', description: '.msbc' },
  { label: l10n.t('A tensor’s values, for NumPy'), format: 'npy', extension: 'npy', description: '.npy' },
];

/** Asks what and where to, and has the adapter write it. */
export async function exportSomething(sessions: Sessions): Promise<void> {
  const format = await vscode.window.showQuickPick(FORMATS, { title: l10n.t('Export') });
  if (!format) return;
  const what = await subject(format, sessions);
  if (!what) return;
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath ?? '';
  const defaultUri = vscode.Uri.file(path.join(folder, `${what.name}.${format.extension}`));
  const target = await vscode.window.showSaveDialog({ defaultUri, filters: { [format.label]: [format.extension] } });
  if (!target) return;
  const answer = await sessions.request<{ bytes?: number; bytesWritten?: number }>('dvm/export', {
    format: format.format,
    path: target.fsPath,
    ...what.args,
  });
  const size = answer.bytes ?? answer.bytesWritten;
  void vscode.window.showInformationMessage(
    size === undefined ? l10n.t`Wrote ${target.fsPath}.` : l10n.t`Wrote ${target.fsPath} (${bytes(size)}).`,
  );
}

async function subject(format: Format, sessions: Sessions): Promise<{ name: string; args: object } | undefined> {
  if (format.format === 'npy') {
    const expression = await vscode.window.showInputBox({
      title: l10n.t('Tensor to export'),
      prompt: l10n.t('Name or expression at the current stop'),
    });
    return expression ? { name: expression.replace(/\W+/g, '_'), args: { expression } } : undefined;
  }
  if (format.format === 'msbc') {
    const { programs } = await sessions.request<{ programs: { id: number; name: string }[] }>('dvm/programs');
    const items = programs.map((p) => ({ label: p.name, description: `#${p.id}`, id: p.id }));
    const chosen = await vscode.window.showQuickPick(items, { title: l10n.t('Program to export') });
    return chosen && { name: chosen.label.replace(/\W+/g, '_'), args: { program: chosen.id } };
  }
  return { name: format.format === 'perfetto' ? 'trace' : 'memory', args: {} };
}
