// One tensor in a page of its own: heat map of two axes, statistics, histogram, and its history if it is watched.
import { randomBytes } from 'node:crypto';
import * as vscode from 'vscode';
import type { Tensor } from '../protocol';
import type { Sessions } from '../sessions';
import type { VariableContext } from '../watch/commands';
import type { WatchModel } from '../watch/model';
import type { WatchNode } from '../watch/tree';

/** What to ask dvm/tensor for. */
interface Target {
  name: string;
  ref?: string;
  expression?: string;
  watch?: string;
}

/** Asked of the page: the part of the tensor to draw, as a NumPy slice. */
interface SliceMessage {
  slice: string;
}

/** More values than this are not drawn: a screen has no more pixels for them. */
const MAX_BYTES = 4 << 20;

export class TensorViews implements vscode.Disposable {
  private readonly panels = new Map<string, { panel: vscode.WebviewPanel; target: Target; slice?: string }>();
  private readonly disposables: vscode.Disposable[];

  constructor(
    private readonly extension: vscode.Uri,
    private readonly sessions: Sessions,
    private readonly model: WatchModel,
  ) {
    this.disposables = [
      vscode.commands.registerCommand('dvm.tensor.show', (node: WatchNode) =>
        this.open({ name: node.definition.expression, expression: node.definition.expression, watch: node.definition.key }),
      ),
      vscode.commands.registerCommand('dvm.tensor.showVariable', (context: VariableContext) => {
        const { variable } = context;
        if (variable)
          this.open({
            name: variable.name,
            expression: variable.evaluateName ?? variable.name,
            ...refOf(variable.memoryReference),
          });
      }),
      sessions.onRunState((session) => {
        if (sessions.isStopped(session)) this.refresh();
      }),
      model.onChanged(() => this.refresh((t) => t.watch !== undefined)),
    ];
  }

  private open(target: Target): void {
    const shown = this.panels.get(target.name);
    if (shown) {
      shown.panel.reveal();
      shown.target = target;
      void this.draw(target.name);
      return;
    }
    const media = vscode.Uri.joinPath(this.extension, 'extension', 'dist');
    const panel = vscode.window.createWebviewPanel('dvm.tensor', `Tensor ${target.name}`, vscode.ViewColumn.Beside, {
      enableScripts: true,
      localResourceRoots: [media],
    });
    this.panels.set(target.name, { panel, target });
    panel.onDidDispose(() => this.panels.delete(target.name));
    panel.webview.onDidReceiveMessage((message: SliceMessage | { ready: true }) => {
      const entry = this.panels.get(target.name);
      if (entry && 'slice' in message) entry.slice = message.slice;
      void this.draw(target.name);
    });
    panel.webview.html = page(panel.webview, vscode.Uri.joinPath(media, 'tensor.js'), target.name);
  }

  private refresh(wanted: (target: Target) => boolean = () => true): void {
    for (const [name, { panel, target }] of this.panels) if (panel.visible && wanted(target)) void this.draw(name);
  }

  private async draw(name: string): Promise<void> {
    const entry = this.panels.get(name);
    const session = this.sessions.current();
    if (!entry || !session) return;
    const { target, panel } = entry;
    const series = target.watch === undefined ? undefined : this.model.seriesOf(target.watch);
    const history = series?.history().map((v) => (Number.isFinite(v) ? v : null)) ?? [];
    const tensor = await this.ask(session, target, entry.slice);
    await panel.webview.postMessage({ tensor, history, step: series?.last?.step, lastStats: series?.lastStats });
  }

  private async ask(
    session: vscode.DebugSession,
    target: Target,
    slice: string | undefined,
  ): Promise<Tensor | { reason: string }> {
    const watchId = target.watch === undefined ? undefined : this.model.watchId(target.watch, session);
    const named = this.sessions.isStopped(session) ? { ref: target.ref, expression: target.expression } : { watchId };
    const args = { ...named, ...(slice ? { slice } : {}), maxBytes: MAX_BYTES };
    try {
      return await this.sessions.request<Tensor>('dvm/tensor', args, session);
    } catch (error) {
      return { reason: error instanceof Error ? error.message : String(error) };
    }
  }

  dispose(): void {
    this.panels.forEach(({ panel }) => panel.dispose());
    this.disposables.forEach((d) => d.dispose());
  }
}

const refOf = (memoryReference: string | undefined): { ref?: string } => (memoryReference ? { ref: memoryReference } : {});

function page(webview: vscode.Webview, script: vscode.Uri, name: string): string {
  const nonce = randomBytes(16).toString('base64');
  const title = name.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
  return `<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Tensor ${title}</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'nonce-${nonce}'">
<style>
body { font: var(--vscode-font-size) var(--vscode-font-family); color: var(--vscode-foreground); padding: 8px 16px; }
main { display: flex; flex-wrap: wrap; gap: 24px; align-items: flex-start; }
canvas { image-rendering: pixelated; border: 1px solid var(--vscode-panel-border); background: var(--vscode-editorWidget-background); }
table { border-spacing: 0; font-variant-numeric: tabular-nums; }
th { text-align: left; font-weight: normal; opacity: .8; padding-right: 16px; }
td { text-align: right; font-family: var(--vscode-editor-font-family); }
label { display: block; margin: 4px 0; } select, input[type=range] { vertical-align: middle; color: inherit; background: var(--vscode-dropdown-background); }
#note { color: var(--vscode-descriptionForeground); min-height: 1.4em; } .bad { color: var(--vscode-dvm-notFinite); }
</style></head><body><p id="head"></p><p id="note" role="status"></p><main>
<section><div id="axes"></div><canvas id="map" width="420" height="420" tabindex="0" role="img" aria-label="Heat map"></canvas><p id="cell"></p></section>
<section><table id="stats"></table><h4>Histogram</h4><canvas id="bars" width="260" height="90" role="img" aria-label="Histogram"></canvas>
<h4 id="past">History</h4><canvas id="line" width="260" height="90" role="img" aria-label="History"></canvas></section>
</main><script nonce="${nonce}" src="${webview.asWebviewUri(script)}"></script></body></html>`;
}
