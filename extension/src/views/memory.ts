// The Memory View's panel: hands the page what the adapter tells, and does what only an editor can (go to a line, save a file).
import { randomBytes } from 'node:crypto';
import * as vscode from 'vscode';
import { guarded, messageOf } from '../log';
import type { MemoryViewAnswer } from '../protocol';
import type { Sessions } from '../sessions';
import { goTo } from '../watch/commands';

/** From the page. */
export type FromMemoryPage =
  | { type: 'view'; from?: number; to?: number; select?: number; fresh?: boolean; tag: number }
  | { type: 'goto'; path: string; line: number }
  | { type: 'program'; program: number }
  | { type: 'save'; format: 'png' | 'svg'; data: string }
  | { type: 'export'; format: 'torch-snapshot' | 'perfetto' };

/** To the page. `tag`: of the request it answers. */
export type ToMemoryPage =
  | { type: 'view'; answer: MemoryViewAnswer; tag: number }
  | { type: 'error'; text: string; tag: number }
  | { type: 'stale' };

const SUFFIX = { png: 'png', svg: 'svg', 'torch-snapshot': 'pickle', perfetto: 'json' } as const;

export class MemoryView implements vscode.Disposable {
  private panel: vscode.WebviewPanel | undefined;
  private readonly disposables: vscode.Disposable[];

  constructor(
    private readonly extension: vscode.Uri,
    private readonly sessions: Sessions,
  ) {
    this.disposables = [
      vscode.commands.registerCommand('dvm.memory', () => guarded('memory view', () => this.open())),
      sessions.onRunState((session) => {
        if (sessions.isStopped(session) && this.panel?.visible) this.stale();
      }),
    ];
  }

  private async open(): Promise<void> {
    await this.sessions.request('dvm/status'); // says what to do where there is no session
    if (this.panel) return this.panel.reveal();
    const media = vscode.Uri.joinPath(this.extension, 'extension', 'dist');
    this.panel = vscode.window.createWebviewPanel('dvm.memory', 'Memory View', vscode.ViewColumn.Active, {
      enableScripts: true,
      localResourceRoots: [media],
    });
    this.panel.onDidDispose(() => (this.panel = undefined));
    this.panel.webview.onDidReceiveMessage((message: FromMemoryPage) => this.answer(message));
    this.panel.webview.html = page(this.panel.webview, media);
  }

  /** There is more to show. A hidden page is made anew when it is looked at again, and asks by itself. */
  private stale(): void {
    void this.panel?.webview.postMessage({ type: 'stale' } satisfies ToMemoryPage);
  }

  private async answer(message: FromMemoryPage): Promise<void> {
    switch (message.type) {
      case 'view':
        return this.view(message);
      case 'goto':
        return void (await guarded('go to the line', () => goTo(message.path, message.line)));
      case 'program':
        return void (await vscode.commands.executeCommand(
          'dvm.program.open',
          message.program,
          `program ${message.program}`,
          'tensor',
        ));
      case 'save':
        return void (await guarded(`save ${message.format}`, () => save(message.format, message.data)));
      case 'export':
        return void (await guarded(`export ${message.format}`, () => this.export(message.format)));
    }
  }

  private async view({ tag, from, to, select, fresh }: FromMemoryPage & { type: 'view' }): Promise<void> {
    const reply = (told: ToMemoryPage): void => void this.panel?.webview.postMessage(told);
    try {
      reply({
        type: 'view',
        answer: await this.sessions.request<MemoryViewAnswer>('dvm/memoryView', { from, to, select, fresh }),
        tag,
      });
    } catch (error) {
      reply({ type: 'error', text: messageOf(error), tag });
    }
  }

  private async export(format: 'torch-snapshot' | 'perfetto'): Promise<void> {
    const target = await askWhere(format);
    if (target) await this.sessions.request('dvm/export', { format, path: target.fsPath });
  }

  dispose(): void {
    this.panel?.dispose();
    this.disposables.forEach((d) => d.dispose());
  }
}

function askWhere(format: keyof typeof SUFFIX): Thenable<vscode.Uri | undefined> {
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
  const name = `memory.${SUFFIX[format]}`;
  return vscode.window.showSaveDialog({
    title: `Save the memory timeline (${format})`,
    ...(folder ? { defaultUri: vscode.Uri.joinPath(folder, name) } : {}),
  });
}

async function save(format: 'png' | 'svg', data: string): Promise<void> {
  const target = await askWhere(format);
  if (target) await vscode.workspace.fs.writeFile(target, Buffer.from(data, format === 'png' ? 'base64' : 'utf8'));
}

function page(webview: vscode.Webview, media: vscode.Uri): string {
  const nonce = randomBytes(16).toString('base64');
  const uri = (name: string): string => webview.asWebviewUri(vscode.Uri.joinPath(media, name)).toString();
  const policy = [
    "default-src 'none'",
    'img-src data:',
    `style-src ${webview.cspSource} 'unsafe-inline'`,
    `font-src ${webview.cspSource}`,
    `script-src 'nonce-${nonce}'`,
  ].join('; ');
  return `<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Memory View</title>
<meta http-equiv="Content-Security-Policy" content="${policy}">
<link rel="stylesheet" href="${uri('memory.css')}"></head>
<body><main>
<header id="facts" role="status" aria-live="polite"></header>
<div id="tools" role="toolbar" aria-label="Memory view">
<vscode-single-select id="step" aria-label="Step"></vscode-single-select>
<vscode-single-select id="mode" aria-label="What lies on the vertical axis">
<vscode-option value="time">by bytes alive</vscode-option><vscode-option value="address">by address</vscode-option></vscode-single-select>
<vscode-single-select id="compare" aria-label="Step to compare with"></vscode-single-select>
<vscode-button id="whole" secondary>Whole log</vscode-button><vscode-button id="peak" secondary>Go to peak</vscode-button>
<vscode-button id="fresh" secondary>Refresh</vscode-button><span class="gap"></span>
<vscode-button data-save="png" secondary>PNG</vscode-button><vscode-button data-save="svg" secondary>SVG</vscode-button>
<vscode-button data-export="torch-snapshot" secondary>PyTorch</vscode-button>
<vscode-button data-export="perfetto" secondary>Perfetto</vscode-button></div>
<div id="chart" role="img"></div>
<section id="below"><section id="tables" aria-label="Buffers"><h2 id="which"></h2><div id="table"></div></section>
<section id="selected" aria-live="polite" aria-label="Selected buffer"></section></section>
</main><script nonce="${nonce}" src="${uri('memory.js')}"></script></body></html>`;
}
