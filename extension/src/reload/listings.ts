// What the last save changed of the bytecode: the program's instructions before and now, in the editor's own diff.
import * as l10n from '@vscode/l10n';
import * as vscode from 'vscode';
import { guarded } from '../log';
import { shortName } from '../programs/model';
import type { ReloadListings, ReloadProgram } from '../protocol';
import type { Sessions } from '../sessions';
import { count } from '../text';

const SCHEME = 'dvm-reload-listing';

export class Listings implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly texts = new Map<string, string>();
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changed.event;
  private readonly disposables: vscode.Disposable[];

  constructor(private readonly sessions: Sessions) {
    this.disposables = [
      this.changed,
      vscode.workspace.registerTextDocumentContentProvider(SCHEME, this),
      vscode.commands.registerCommand('dvm.reload.diff', () =>
        guarded(l10n.t('show what the last save changed'), () => this.show()),
      ),
    ];
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.texts.get(uri.toString()) ?? l10n.t('This listing belongs to a session that has ended.');
  }

  private async show(): Promise<void> {
    const { step, programs } = await this.sessions.request<ReloadListings>('dvm/reloadListings');
    const shown = programs.filter((p) => p.listed);
    if (!shown.length) {
      const text = programs.length
        ? l10n.t('The program before is too long to be kept for a comparison.')
        : l10n.t('No instruction of a captured function was changed by the last save that is in force.');
      return void vscode.window.showInformationMessage(text);
    }
    const items = shown.map((program) => ({
      label: shortName(program.name),
      description: `${program.backward ? l10n.t('backward') : l10n.t('forward')} #${program.program}`,
      detail: l10n.t`${count(program.instructionsPatched)} of ${count(program.instructionsTotal)} instructions differ`,
      program,
    }));
    const title = l10n.t('Programs that the last save changed');
    const chosen = items.length === 1 ? items[0] : await vscode.window.showQuickPick(items, { title });
    if (chosen) await this.diff(chosen.program, step);
  }

  private async diff(p: ReloadProgram, step: number): Promise<void> {
    const name = `${shortName(p.name)}${p.backward ? ` (${l10n.t('backward')})` : ''}`;
    const [before, now] = [this.document('before', p, p.before), this.document('now', p, p.now)];
    const title = l10n.t`${name}: before and since step ${count(step)}`;
    await vscode.commands.executeCommand('vscode.diff', before, now, title, { preview: true });
  }

  private document(side: string, p: ReloadProgram, lines: readonly string[]): vscode.Uri {
    const file = `${shortName(p.name).replace(/[^\w.<>-]+/g, '_')} #${p.program}.dvmlist`;
    const uri = vscode.Uri.from({ scheme: SCHEME, path: `/${side}/${file}` });
    this.texts.set(uri.toString(), lines.length ? `${lines.join('\n')}\n` : '');
    this.changed.fire(uri);
    return uri;
  }

  dispose(): void {
    this.disposables.forEach((d) => d.dispose());
  }
}
