// Hot reload as the user meets it: reload now, why, undo, marks on the lines in force and on the lines a refusal names.
// Saving a file needs nothing from us: the adapter sees it. So a reload is sent on command only, and never twice.
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import * as l10n from '@vscode/l10n';
import * as vscode from 'vscode';
import { guarded } from '../log';
import type { Reload } from '../protocol';
import type { Sessions } from '../sessions';
import { count } from '../text';
import { changedLines, placeIn, reloadPage } from './report';
import type { StatusBar } from './status';

const SCHEME = 'dvm-reload';
const PAGE = vscode.Uri.from({ scheme: SCHEME, path: '/Hot Reload.md' });

export class HotReload implements vscode.Disposable, vscode.TextDocumentContentProvider {
  private last: Reload | undefined;
  /** Text of a file as the running program has it; taken from the disk when it is opened, at the latest before the first save. */
  private readonly inForce = new Map<string, string>();
  private readonly marks = new Map<string, { lines: number[]; step: number | undefined }>();
  private readonly diagnostics = vscode.languages.createDiagnosticCollection('dvm-reload');
  private readonly pageChanged = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.pageChanged.event;
  private readonly decoration = vscode.window.createTextEditorDecorationType({
    isWholeLine: true,
    borderWidth: '0 0 0 2px',
    borderStyle: 'solid',
    borderColor: new vscode.ThemeColor('dvm.reloadedLine'),
    overviewRulerColor: new vscode.ThemeColor('dvm.reloadedLine'),
    overviewRulerLane: vscode.OverviewRulerLane.Left,
  });
  private readonly disposables: vscode.Disposable[];

  constructor(
    private readonly sessions: Sessions,
    private readonly status: StatusBar,
  ) {
    this.disposables = [
      this.diagnostics,
      this.pageChanged,
      this.decoration,
      vscode.workspace.registerTextDocumentContentProvider(SCHEME, this),
      vscode.commands.registerCommand('dvm.reload', () => this.now()),
      vscode.commands.registerCommand('dvm.reload.why', () => this.showPage()),
      vscode.commands.registerCommand('dvm.reload.undo', () => this.undo()),
      sessions.onEvent((e) => {
        if (e.name === 'dvm/reload') void this.report(e.body as Reload);
      }),
      sessions.onReady(() => {
        if (sessions.all().length === 1) this.forget();
        for (const document of vscode.workspace.textDocuments) void this.keepIfPython(document);
      }),
      vscode.workspace.onDidOpenTextDocument((d) => this.keepIfPython(d)),
      sessions.onEnded(() => {
        if (!sessions.all().length) this.clearMarks();
      }),
      vscode.workspace.onWillSaveTextDocument((e) => {
        e.waitUntil(this.keepIfPython(e.document));
      }),
      vscode.window.onDidChangeVisibleTextEditors(() => this.decorate()),
    ];
  }

  provideTextDocumentContent(): string {
    return this.last ? reloadPage(this.last) : l10n.t('No reload so far.');
  }

  private async now(): Promise<void> {
    const document = vscode.window.activeTextEditor?.document;
    if (document?.languageId !== 'python') {
      void vscode.window.showInformationMessage(l10n.t('Open the Python file to reload.'));
      return;
    }
    const file = document.uri.fsPath;
    await guarded(l10n.t`reload ${path.basename(file)}`, async () => {
      await this.keepText(file);
      this.status.showReloading();
      if (document.isDirty) await document.save();
      await this.report({ path: file, ...(await this.sessions.request<Reload>('dvm/reload', { path: file })) });
    });
  }

  private async undo(): Promise<void> {
    await guarded(l10n.t('undo the last reload'), async () => {
      this.status.showReloading();
      const path = this.last?.path;
      const answer = await this.sessions.request<Reload>('dvm/undoReload', path ? { path } : {});
      await this.report({ ...(path ? { path } : {}), ...answer, undone: answer.outcome === 'applied' });
    });
  }

  private async showPage(): Promise<void> {
    await vscode.commands
      .executeCommand('markdown.showPreview', PAGE)
      .then(undefined, () => vscode.window.showTextDocument(PAGE));
  }

  /** An answer and the event about the same reload both come here; the second changes nothing. */
  private async report(r: Reload): Promise<void> {
    this.last = r;
    this.status.showReload(r);
    this.pageChanged.fire(PAGE);
    void vscode.commands.executeCommand('setContext', 'dvm.reloaded', true);
    this.diagnostics.clear();
    if (r.outcome === 'refused') this.markReasons(r);
    else if (r.outcome === 'applied' && r.path) await this.markApplied(r.path, r);
  }

  private async markApplied(file: string, r: Reload): Promise<void> {
    const now = await readFile(file, 'utf8').catch(() => undefined);
    const before = this.inForce.get(file);
    if (r.undone) this.marks.delete(file);
    else if (now !== undefined && before !== undefined && now !== before) {
      this.marks.set(file, { lines: changedLines(before, now), step: r.step });
    }
    if (now !== undefined && !r.undone) this.inForce.set(file, now);
    this.decorate();
  }

  /** Problems at the places a refusal's reasons name, else at the file's first line. */
  private markReasons(r: Reload): void {
    const byFile = new Map<string, vscode.Diagnostic[]>();
    for (const reason of r.reasons ?? []) {
      const place = placeIn(reason);
      const file = place && path.isAbsolute(place.path) ? place.path : r.path;
      if (!file) continue;
      const line = Math.max(0, (place?.line ?? 1) - 1);
      const range = new vscode.Range(line, 0, line, Number.MAX_SAFE_INTEGER);
      const diagnostic = new vscode.Diagnostic(range, l10n.t`Hot reload refused: ${reason}`, vscode.DiagnosticSeverity.Warning);
      diagnostic.source = 'DVM';
      byFile.set(file, [...(byFile.get(file) ?? []), diagnostic]);
    }
    for (const [file, found] of byFile) this.diagnostics.set(vscode.Uri.file(file), found);
  }

  private async keepIfPython({ languageId, uri }: vscode.TextDocument): Promise<void> {
    if (languageId === 'python' && uri.scheme === 'file' && this.sessions.all().length) await this.keepText(uri.fsPath);
  }

  /** The text on disk before the first save is what the program has; later, reloads tell. */
  private async keepText(file: string): Promise<void> {
    if (this.inForce.has(file)) return;
    const text = await readFile(file, 'utf8').catch(() => undefined);
    if (text !== undefined) this.inForce.set(file, text);
  }

  private decorate(): void {
    for (const editor of vscode.window.visibleTextEditors) {
      const mark = this.marks.get(editor.document.uri.fsPath);
      const hoverMessage = mark?.step === undefined ? l10n.t('in force') : l10n.t`in force since step ${count(mark.step)}`;
      const lines = (mark?.lines ?? []).filter((line) => line < editor.document.lineCount);
      editor.setDecorations(
        this.decoration,
        lines.map((line) => ({ range: new vscode.Range(line, 0, line, 0), hoverMessage })),
      );
    }
  }

  private clearMarks(): void {
    this.marks.clear();
    this.diagnostics.clear();
    this.decorate();
  }

  private forget(): void {
    this.inForce.clear();
    this.clearMarks();
    this.last = undefined;
    void vscode.commands.executeCommand('setContext', 'dvm.reloaded', false);
  }

  dispose(): void {
    this.disposables.forEach((d) => d.dispose());
  }
}
