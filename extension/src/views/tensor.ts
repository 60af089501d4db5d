// Tensor pages: one panel for each tensor that was asked for, from a watch, the Variables view, an editor or the Memory View.
import * as l10n from '@vscode/l10n';
import * as vscode from 'vscode';
import type { Sessions } from '../sessions';
import { editorExpression, type VariableContext } from '../watch/commands';
import type { WatchModel } from '../watch/model';
import type { WatchNode } from '../watch/tree';
import { TensorPanel, type Target } from './tensor_panel';

export class TensorViews implements vscode.Disposable {
  private readonly pages = new Map<string, TensorPanel>();
  private readonly disposables: vscode.Disposable[];

  constructor(
    private readonly extension: vscode.Uri,
    private readonly sessions: Sessions,
    private readonly model: WatchModel,
  ) {
    const command = (id: string, run: (...args: never[]) => unknown): vscode.Disposable =>
      vscode.commands.registerCommand(id, (...args: unknown[]) => run(...(args as never[])));
    this.disposables = [
      command('dvm.tensor.show', (row?: WatchNode) => {
        if (row) this.openWatch(row.definition.key); // else the row was taken away under the mouse
      }),
      command('dvm.tensor.showWatch', (key: string) => this.openWatch(key)),
      command('dvm.tensor.showVariable', ({ variable }: VariableContext) => {
        if (!variable) return;
        const { name, evaluateName, memoryReference } = variable;
        this.open({ name, ...(evaluateName || !memoryReference ? { expression: evaluateName ?? name } : { memoryReference }) });
      }),
      command('dvm.tensor.showSelection', async () => {
        const expression = editorExpression() ?? (await this.ask());
        if (expression) this.open({ name: expression, expression });
      }),
      sessions.onRunState((session) => {
        if (session.id === sessions.current()?.id) for (const page of this.pages.values()) page.runStateChanged();
      }),
      sessions.onEnded(() => this.pages.forEach((page) => page.runStateChanged())),
      model.onChanged(() => this.pages.forEach((page) => page.postState())),
      model.onValues(({ session, keys }) => {
        if (session !== sessions.current()?.id) return;
        for (const page of this.pages.values()) if (page.target.watch !== undefined && keys.has(page.target.watch)) page.stale();
      }),
    ];
  }

  private openWatch(key: string): void {
    const definition = this.model.find(key);
    if (!definition) return;
    const { expression, of } = definition;
    this.open({ name: expression, ...(of ? {} : { expression }), watch: key });
  }

  private open(target: Target): void {
    const shown = this.pages.get(target.name);
    if (shown) {
      shown.point(target);
      return shown.reveal();
    }
    // A tensor that is watched anyway is shown with its history, wherever it was asked for.
    const watch = target.watch ?? this.model.all().find((d) => d.expression === target.expression)?.key;
    const page = new TensorPanel(
      { ...target, ...(watch === undefined ? {} : { watch }) },
      this.extension,
      this.sessions,
      this.model,
    );
    this.pages.set(target.name, page);
    page.onDisposed(() => this.pages.delete(target.name));
  }

  private ask(): Thenable<string | undefined> {
    return vscode.window.showInputBox({
      title: l10n.t('Show a tensor'),
      prompt: l10n.t('A variable or an expression of tensors, as at the stop'),
      placeHolder: 'h[0]',
      validateInput: (text) => (text.trim() ? undefined : l10n.t('Type the name of a tensor.')),
    });
  }

  dispose(): void {
    this.pages.forEach((page) => page.dispose());
    this.disposables.forEach((d) => d.dispose());
  }
}
