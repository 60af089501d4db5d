// .msbc files open in a page that shows what they say: one program, its inputs, areas and instructions, its source lines and hashes.
import path from 'node:path';
import * as l10n from '@vscode/l10n';
import * as vscode from 'vscode';
import { guarded } from '../log';
import { escapeHtml, mediaOf, pageHtml } from '../views/page';
import { goTo } from '../watch/commands';
import type { FromMsbcPage, Remedy, ToMsbcPage } from './facts';
import { readFacts } from './read';

export const VIEW = 'dvm.msbc';

class Document implements vscode.CustomDocument {
  constructor(readonly uri: vscode.Uri) {}
  dispose(): void {
    // Nothing is held: every page reads the file itself.
  }
}

export class MsbcViewer implements vscode.CustomReadonlyEditorProvider<Document>, vscode.Disposable {
  private readonly registered: vscode.Disposable;

  constructor(private readonly extension: vscode.Uri) {
    this.registered = vscode.window.registerCustomEditorProvider(VIEW, this, { supportsMultipleEditorsPerDocument: true });
  }

  openCustomDocument(uri: vscode.Uri): Document {
    return new Document(uri);
  }

  resolveCustomEditor({ uri }: Document, panel: vscode.WebviewPanel): void {
    const { webview } = panel;
    webview.options = { enableScripts: true, localResourceRoots: [mediaOf(this.extension)] };
    const show = async (): Promise<void> => {
      const found = await readFacts(uri, this.extension.fsPath);
      const message: ToMsbcPage = 'title' in found ? { type: 'refused', ...found } : { type: 'facts', facts: found };
      await webview.postMessage(message);
    };
    const again = (): void => void guarded(l10n.t`read ${path.basename(uri.fsPath)}`, show);
    const saved = vscode.workspace.createFileSystemWatcher(
      new vscode.RelativePattern(vscode.Uri.joinPath(uri, '..'), path.basename(uri.fsPath)),
    );
    const listening = [
      saved,
      saved.onDidChange(again),
      saved.onDidCreate(again),
      vscode.workspace.onDidGrantWorkspaceTrust(again),
      vscode.workspace.onDidChangeConfiguration((e) => e.affectsConfiguration('dvm.python') && again()),
      webview.onDidReceiveMessage((message: FromMsbcPage) => this.answer(message, again)),
    ];
    panel.onDidDispose(() => listening.forEach((d) => d.dispose()));
    webview.html = page(webview, this.extension, path.basename(uri.fsPath));
  }

  private async answer(message: FromMsbcPage, again: () => void): Promise<void> {
    switch (message.type) {
      case 'ready':
        return again();
      case 'goto':
        return void (await guarded(l10n.t('go to the line'), () => goTo(message.path, message.line)));
      case 'copy':
        return vscode.env.clipboard.writeText(message.text);
      case 'remedy':
        return message.remedy === 'again' ? again() : void (await vscode.commands.executeCommand(...REMEDIES[message.remedy]));
    }
  }

  dispose(): void {
    this.registered.dispose();
  }
}

const REMEDIES: Record<Exclude<Remedy, 'again'>, [string, ...string[]]> = {
  trust: ['workbench.trust.manage'],
  interpreter: ['workbench.action.openSettings', 'dvm.python'],
};

function page(webview: vscode.Webview, extension: vscode.Uri, name: string): string {
  const body = `<main>
<header id="facts" role="status" aria-live="polite"></header>
<div id="refused" role="alert" hidden><h1></h1><p></p><div id="remedies"></div></div>
<p id="note" class="soft" hidden></p>
<section id="below"><section aria-label="${escapeHtml(l10n.t('Instructions'))}"><div id="table"></div></section>
<section id="selected" aria-live="polite" aria-label="${escapeHtml(l10n.t('Selected instruction'))}"></section></section>
</main>`;
  return pageHtml(webview, extension, { title: name, script: 'msbc', sheet: true, body });
}
