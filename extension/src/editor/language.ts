// The language server, `python -m dvm_adapter.lsp`: started once a Python source that has to do with us is open.
import * as l10n from '@vscode/l10n';
import * as vscode from 'vscode';
import type { LanguageClient } from 'vscode-languageclient/node';
import { adapterEnvironment } from '../launch/adapter';
import { findInterpreter, install, probe } from '../launch/interpreter';
import { guarded, log, messageOf } from '../log';

/** Sources the server may have something to say of: ours, and models, whose layers a captured function elsewhere calls. */
const OURS = /\bdvm(_core)?\b|^\s*(import|from)\s+(mindspore|torch)\b/m;
const NEEDED = ['pygls>=2.0', 'watchfiles>=0.24'];

export class Language implements vscode.Disposable {
  private client: LanguageClient | undefined;
  private starting: Promise<void> | undefined;
  private asked = false;
  private disposed = false;
  /** The interpreter that was found to lack what the server needs: not asked again at every document. */
  private lacking: string | undefined;
  private readonly disposables: vscode.Disposable[];

  constructor(private readonly extensionPath: string) {
    this.disposables = [
      vscode.workspace.onDidOpenTextDocument((document) => this.look(document)),
      vscode.workspace.onDidSaveTextDocument((document) => this.look(document)),
      vscode.workspace.onDidChangeConfiguration((e) => {
        if (e.affectsConfiguration('dvm.languageServer') || e.affectsConfiguration('dvm.python')) void this.restart();
      }),
      vscode.workspace.onDidGrantWorkspaceTrust(() => this.lookAround()),
      vscode.commands.registerCommand('dvm.languageServer.restart', () =>
        guarded(l10n.t('restart the language server'), () => this.restart()),
      ),
    ];
    this.lookAround();
  }

  get running(): boolean {
    return this.client?.isRunning() ?? false;
  }

  private lookAround(): void {
    for (const document of vscode.workspace.textDocuments) this.look(document);
  }

  private look(document: vscode.TextDocument): void {
    if (this.client || this.starting || document.languageId !== 'python' || document.uri.scheme !== 'file') return;
    if (!vscode.workspace.isTrusted || !OURS.test(document.getText())) return;
    if (!vscode.workspace.getConfiguration('dvm', document.uri).get<boolean>('languageServer', true)) return;
    this.starting = this.start(vscode.workspace.getWorkspaceFolder(document.uri))
      .catch((error: unknown) => log.error(`the language server does not start: ${messageOf(error)}`))
      .finally(() => (this.starting = undefined));
  }

  private async start(folder: vscode.WorkspaceFolder | undefined): Promise<void> {
    const python = await findInterpreter(folder);
    if (python.path === this.lacking) return;
    if (!(await probe(python.path)).pygls) {
      this.lacking = python.path;
      void this.offerToInstall(python.path);
      return;
    }
    log.info(`${python.path} -m dvm_adapter.lsp (${python.origin})`);
    // Half of the extension's code, and needed only now.
    const { LanguageClient, TransportKind } = await import('vscode-languageclient/node');
    const client = new LanguageClient(
      'dvm',
      l10n.t('DVM Live language server'),
      {
        command: python.path,
        args: ['-m', 'dvm_adapter.lsp'],
        transport: TransportKind.stdio,
        options: { env: adapterEnvironment(this.extensionPath) },
      },
      { documentSelector: [{ language: 'python', scheme: 'file' }], outputChannel: log.channel },
    );
    this.client = client;
    try {
      await client.start();
    } catch (error) {
      this.client = undefined;
      await client.dispose().catch(() => undefined);
      throw error;
    }
    if (this.disposed) await client.dispose();
  }

  /** Asks once a window; the rest of the extension works without. */
  private async offerToInstall(python: string): Promise<void> {
    const text = l10n.t`Shapes and times beside the source need the packages pygls and watchfiles, which ${python} does not have.`;
    log.warn(text);
    if (this.asked) return;
    this.asked = true;
    const choice = await vscode.window.showInformationMessage(text, l10n.t('Install'));
    if (choice && (await install(python, ...NEEDED))) await this.restart();
  }

  private async restart(): Promise<void> {
    await this.starting;
    const old = this.client;
    this.client = this.lacking = undefined;
    await old?.dispose();
    this.lookAround();
    await this.starting;
  }

  dispose(): void {
    this.disposed = true;
    this.disposables.forEach((d) => d.dispose());
    void this.client?.dispose();
  }
}
