// The Memory View's panel: hands the page what the adapter tells, and does what only an editor can (go to a line, save a file).
import * as l10n from '@vscode/l10n';
import * as vscode from 'vscode';
import { guarded, messageOf } from '../log';
import type { MemoryViewAnswer } from '../protocol';
import type { Sessions } from '../sessions';
import { goTo } from '../watch/commands';
import type { Result } from '../watch/instructions';
import { escapeHtml, mediaOf, pageHtml } from './page';

/** From the page. */
export type FromMemoryPage =
  | { type: 'view'; from?: number; to?: number; select?: number; fresh?: boolean; tag: number }
  | { type: 'goto'; path: string; line: number }
  | { type: 'program'; program: number }
  | { type: 'watch'; result: Result; show: boolean }
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
      vscode.commands.registerCommand('dvm.memory', () => guarded(l10n.t('memory view'), () => this.open())),
      sessions.onRunState((session) => {
        if (sessions.isStopped(session) && this.panel?.visible) this.stale();
      }),
    ];
  }

  private async open(): Promise<void> {
    await this.sessions.request('dvm/status'); // says what to do where there is no session
    if (this.panel) return this.panel.reveal();
    this.panel = vscode.window.createWebviewPanel('dvm.memory', l10n.t('Memory View'), vscode.ViewColumn.Active, {
      enableScripts: true,
      localResourceRoots: [mediaOf(this.extension)],
    });
    this.panel.onDidDispose(() => (this.panel = undefined));
    this.panel.webview.onDidReceiveMessage((message: FromMemoryPage) => this.answer(message));
    this.panel.webview.html = page(this.panel.webview, this.extension);
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
        return void (await guarded(l10n.t('go to the line'), () => goTo(message.path, message.line)));
      case 'program':
        return void (await vscode.commands.executeCommand(
          'dvm.program.open',
          message.program,
          l10n.t`program ${message.program}`,
          'tensor',
        ));
      case 'watch': {
        const key = await vscode.commands.executeCommand<string | undefined>('dvm.watch.addResult', message.result);
        if (message.show && key !== undefined) await vscode.commands.executeCommand('dvm.tensor.showWatch', key);
        return;
      }
      case 'save':
        return void (await guarded(l10n.t`save ${message.format}`, () => save(message.format, message.data)));
      case 'export':
        return void (await guarded(l10n.t`export ${message.format}`, () => this.export(message.format)));
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
    title: l10n.t`Save the memory timeline (${format})`,
    ...(folder ? { defaultUri: vscode.Uri.joinPath(folder, name) } : {}),
  });
}

async function save(format: 'png' | 'svg', data: string): Promise<void> {
  const target = await askWhere(format);
  if (target) await vscode.workspace.fs.writeFile(target, Buffer.from(data, format === 'png' ? 'base64' : 'utf8'));
}

function page(webview: vscode.Webview, extension: vscode.Uri): string {
  const button = (attribute: string, text: string): string =>
    `<vscode-button ${attribute} secondary>${escapeHtml(text)}</vscode-button>`;
  const body = `<main>
<header id="facts" role="status" aria-live="polite"></header>
<div id="tools" role="toolbar" aria-label="${escapeHtml(l10n.t('Memory view'))}">
<vscode-single-select id="step" label="${escapeHtml(l10n.t('Step'))}"></vscode-single-select>
<vscode-single-select id="mode" label="${escapeHtml(l10n.t('What lies on the vertical axis'))}">
<vscode-option value="time">${escapeHtml(l10n.t('by bytes alive'))}</vscode-option>
<vscode-option value="address">${escapeHtml(l10n.t('by address'))}</vscode-option></vscode-single-select>
<vscode-single-select id="compare" label="${escapeHtml(l10n.t('Step to compare with'))}"></vscode-single-select>
${button('id="whole"', l10n.t('Whole log'))}${button('id="peak"', l10n.t('Go to peak'))}
${button('id="fresh"', l10n.t('Refresh'))}<span class="gap"></span>
${button('data-save="png"', 'PNG')}${button('data-save="svg"', 'SVG')}
${button('data-export="torch-snapshot"', 'PyTorch')}${button('data-export="perfetto"', 'Perfetto')}</div>
<div id="chart" role="img"></div>
<section id="below"><section id="tables" aria-label="${escapeHtml(l10n.t('Buffers'))}"><h2 id="which"></h2><div id="table"></div></section>
<section id="selected" aria-live="polite" aria-label="${escapeHtml(l10n.t('Selected buffer'))}"></section></section>
</main>`;
  return pageHtml(webview, extension, { title: l10n.t('Memory View'), script: 'memory', sheet: true, body });
}
