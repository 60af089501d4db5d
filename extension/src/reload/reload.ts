// Hot reload as the user meets it: reload now, why, undo, marks on the lines in force and on the lines a refusal names.
// Saving a file needs nothing from us: the adapter sees it. So a reload is sent on command only, and never twice.
import path from 'node:path';
import * as l10n from '@vscode/l10n';
import * as vscode from 'vscode';
import { guarded } from '../log';
import type { Reload } from '../protocol';
import type { Sessions } from '../sessions';
import { Listings } from './listings';
import { Marks } from './marks';
import { placeIn, reloadPage } from './report';
import type { StatusBar } from './status';

const SCHEME = 'dvm-reload';
const PAGE = vscode.Uri.from({ scheme: SCHEME, path: '/Hot Reload.md' });

export class HotReload implements vscode.Disposable, vscode.TextDocumentContentProvider {
  private last: Reload | undefined;
  private readonly diagnostics = vscode.languages.createDiagnosticCollection('dvm-reload');
  private readonly pageChanged = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.pageChanged.event;
  private readonly marks = new Marks();
  private readonly disposables: vscode.Disposable[];

  constructor(
    private readonly sessions: Sessions,
    private readonly status: StatusBar,
  ) {
    this.disposables = [
      this.diagnostics,
      this.pageChanged,
      this.marks,
      new Listings(sessions),
      vscode.workspace.registerTextDocumentContentProvider(SCHEME, this),
      vscode.commands.registerCommand('dvm.reload', () => this.now()),
      vscode.commands.registerCommand('dvm.reload.why', () => this.showPage()),
      vscode.commands.registerCommand('dvm.reload.undo', () => this.undo()),
      sessions.onEvent((e) => {
        if (e.name === 'dvm/reload') void this.report(e.body as Reload, e.session);
        if (e.name === 'dvm/restarted') this.begin();
      }),
      sessions.onReady(() => this.begin()),
      vscode.workspace.onDidOpenTextDocument((d) => {
        // The editor drops what is told of a page while it opens: a reload that came then is told again.
        if (d.uri.scheme === SCHEME && d.getText() !== this.provideTextDocumentContent()) this.pageChanged.fire(d.uri);
        return this.keepIfPython(d);
      }),
      sessions.onEnded(() => {
        if (!sessions.all().length) this.clear();
      }),
      vscode.workspace.onWillSaveTextDocument((e) => {
        e.waitUntil(this.keepIfPython(e.document));
      }),
    ];
  }

  provideTextDocumentContent(): string {
    return this.last ? reloadPage(this.last) : l10n.t('No reload so far.');
  }

  /** A program begins with what is saved. */
  private begin(): void {
    if (this.sessions.all().length === 1) this.forget();
    for (const document of vscode.workspace.textDocuments) void this.keepIfPython(document);
  }

  private async now(): Promise<void> {
    const document = vscode.window.activeTextEditor?.document;
    if (document?.languageId !== 'python') {
      void vscode.window.showInformationMessage(l10n.t('Open the Python file to reload.'));
      return;
    }
    const file = document.uri.fsPath;
    await guarded(l10n.t`reload ${path.basename(file)}`, async () => {
      await this.marks.keep(file);
      this.status.showReloading();
      if (document.isDirty) await document.save();
      await this.sessions.request<Reload>('dvm/reload', { path: file });
    });
  }

  private async undo(): Promise<void> {
    await guarded(l10n.t('undo the last reload'), async () => {
      this.status.showReloading();
      const path = this.last?.path;
      await this.sessions.request<Reload>('dvm/undoReload', path ? { path } : {});
    });
  }

  private async showPage(): Promise<void> {
    await vscode.commands
      .executeCommand('markdown.showPreview', PAGE)
      .then(undefined, () => vscode.window.showTextDocument(PAGE));
  }

  /** Every reload is told by an event, whoever asked for it. */
  private async report(r: Reload, session: vscode.DebugSession): Promise<void> {
    this.last = r;
    this.status.showReload(r);
    this.pageChanged.fire(PAGE);
    void vscode.commands.executeCommand('setContext', 'dvm.reloaded', true);
    this.diagnostics.clear();
    if (r.outcome === 'refused') this.markReasons(r);
    else if (r.outcome === 'applied' && r.path && !r.pending && this.isFirst(r, session)) await this.marks.applied(r.path, r);
  }

  /** Of several processes one takes a reload back by itself; the others go on with it, and the marks with the one that is looked at. */
  private isFirst(r: Reload, session: vscode.DebugSession): boolean {
    return !r.undone || session.id === this.sessions.current()?.id;
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
    if (languageId === 'python' && uri.scheme === 'file' && this.sessions.all().length) await this.marks.keep(uri.fsPath);
  }

  private clear(): void {
    this.marks.clear();
    this.diagnostics.clear();
  }

  private forget(): void {
    this.marks.clear(true);
    this.diagnostics.clear();
    this.last = undefined;
    void vscode.commands.executeCommand('setContext', 'dvm.reloaded', false);
  }

  dispose(): void {
    this.disposables.forEach((d) => d.dispose());
  }
}
