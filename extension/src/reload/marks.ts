// The lines a reload has put in force: a mark beside each, and words above each block, until the reload is undone or the session ends.
import { readFile } from 'node:fs/promises';
import * as l10n from '@vscode/l10n';
import * as vscode from 'vscode';
import type { Reload } from '../protocol';
import { count } from '../text';
import { blocks, changedLines, shifted } from './lines';

interface Mark {
  /** From 0, ascending. */
  lines: number[];
  step: number | undefined;
}

/** Lenses of one file: a generated file that changed all over has enough with these. */
const MOST_LENSES = 20;

export class Marks implements vscode.Disposable, vscode.CodeLensProvider {
  /** Text of a file as the running program has it; taken from the disk when it is opened, at the latest before the first save. */
  private readonly inForce = new Map<string, string>();
  /** What undo puts in force again, the last one last. */
  private readonly former = new Map<string, string[]>();
  private readonly marks = new Map<string, Mark>();
  /** The file reloaded last: what can be undone and shown. */
  private last: string | undefined;
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChangeCodeLenses = this.changed.event;
  private readonly decoration = vscode.window.createTextEditorDecorationType({
    isWholeLine: true,
    borderWidth: '0 0 0 3px',
    borderStyle: 'solid',
    borderColor: new vscode.ThemeColor('dvm.reloadedLine'),
    overviewRulerColor: new vscode.ThemeColor('dvm.reloadedLine'),
    overviewRulerLane: vscode.OverviewRulerLane.Left,
  });
  private readonly disposables: vscode.Disposable[];

  constructor() {
    this.disposables = [
      this.changed,
      this.decoration,
      vscode.languages.registerCodeLensProvider({ language: 'python' }, this),
      vscode.window.onDidChangeVisibleTextEditors(() => this.decorate()),
      vscode.workspace.onDidChangeTextDocument(({ document, contentChanges }) => {
        const mark = this.marks.get(document.uri.fsPath);
        for (const { range, text } of mark ? contentChanges : []) {
          const edit = { first: range.start.line, last: range.end.line, lines: text.split('\n').length };
          mark!.lines = shifted(mark!.lines, edit);
        }
      }),
    ];
  }

  /** Notes the text on disk, if none is known: before the first save it is what the program has; later, reloads tell. */
  async keep(file: string): Promise<void> {
    if (this.inForce.has(file)) return;
    const text = await readFile(file, 'utf8').catch(() => undefined);
    if (text !== undefined) this.inForce.set(file, text);
  }

  async applied(file: string, r: Reload): Promise<void> {
    const now = await readFile(file, 'utf8').catch(() => undefined);
    const before = this.inForce.get(file);
    this.last = file;
    if (r.undone) {
      const former = this.former.get(file)?.pop();
      if (former !== undefined) this.inForce.set(file, former);
      this.marks.delete(file);
    } else if (now !== undefined) {
      if (before !== undefined && now !== before) {
        // What was only taken out is told at the line that follows.
        const lines = changedLines(before, now);
        const told = (r.changes ?? []).flatMap((c) => (c.line ? [c.line - 1] : []));
        this.marks.set(file, { lines: lines.length ? lines : [...new Set(told)].sort((a, b) => a - b), step: r.step });
        this.former.set(file, [...(this.former.get(file) ?? []), before]);
      }
      this.inForce.set(file, now);
    }
    this.show();
  }

  provideCodeLenses(document: vscode.TextDocument): vscode.CodeLens[] {
    const file = document.uri.fsPath;
    const mark = this.marks.get(file);
    if (!mark || !vscode.workspace.getConfiguration('dvm', document.uri).get<boolean>('codeLens', true)) return [];
    return blocks(mark.lines.filter((line) => line < document.lineCount))
      .slice(0, MOST_LENSES)
      .flatMap(([line], i) => {
        const range = new vscode.Range(line, 0, line, 0);
        const lens = (title: string, command: string): vscode.CodeLens => new vscode.CodeLens(range, { title, command });
        const words = lens(`$(zap) ${inWords(mark)}`, 'dvm.reload.why');
        if (i || file !== this.last) return [words];
        return [words, lens(l10n.t('what changed'), 'dvm.reload.diff'), lens(l10n.t('undo'), 'dvm.reload.undo')];
      });
  }

  /** No mark any more; with `texts`, nothing is known of what is in force either. */
  clear(texts = false): void {
    this.marks.clear();
    if (texts) {
      this.inForce.clear();
      this.former.clear();
    }
    this.show();
  }

  private show(): void {
    this.decorate();
    this.changed.fire();
  }

  private decorate(): void {
    for (const editor of vscode.window.visibleTextEditors) {
      const mark = this.marks.get(editor.document.uri.fsPath);
      const lines = (mark?.lines ?? []).filter((line) => line < editor.document.lineCount);
      editor.setDecorations(
        this.decoration,
        lines.map((line) => ({ range: new vscode.Range(line, 0, line, 0), hoverMessage: mark ? inWords(mark) : '' })),
      );
    }
  }

  dispose(): void {
    this.disposables.forEach((d) => d.dispose());
  }
}

const inWords = ({ step }: Mark): string =>
  step === undefined ? l10n.t('in force') : l10n.t`in force since step ${count(step)}`;
