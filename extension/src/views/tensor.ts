// One tensor in a page of its own: heat map of two axes, statistics, histogram, and its history if it is watched.
import * as l10n from '@vscode/l10n';
import * as vscode from 'vscode';
import { messageOf } from '../log';
import type { Stats, Tensor } from '../protocol';
import type { Sessions } from '../sessions';
import type { VariableContext } from '../watch/commands';
import type { WatchModel } from '../watch/model';
import type { WatchNode } from '../watch/tree';
import { escapeHtml, mediaOf, pageHtml } from './page';

/** What a page shows: an expression at the stop, or a watch, which is also shown while the program runs. */
interface Target {
  name: string;
  expression?: string;
  memoryReference?: string;
  watch?: string;
}

/** From the page: draw this part of a tensor that is too large to be sent whole. */
interface SliceMessage {
  slice: string;
}

/** To the page. */
export interface TensorMessage {
  tensor?: Tensor;
  /** Set if `tensor` is this part of the whole only. */
  slice?: string;
  /** Why there is no tensor. */
  reason?: string;
  /** Measure of the watch's samples; null where it was not finite. */
  history: (number | null)[];
  step?: number;
  lastStats?: Stats;
}

interface Page {
  panel: vscode.WebviewPanel;
  target: Target;
}

/** Larger tensors are sent in planes: a screen has no more pixels anyway. */
const MAX_BYTES = 4 << 20;

export class TensorViews implements vscode.Disposable {
  private readonly pages = new Map<string, Page>();
  private readonly disposables: vscode.Disposable[];

  constructor(
    private readonly extension: vscode.Uri,
    private readonly sessions: Sessions,
    private readonly model: WatchModel,
  ) {
    this.disposables = [
      vscode.commands.registerCommand('dvm.tensor.show', (row?: WatchNode) => {
        if (!row) return; // the row was taken away under the mouse
        const { expression, key } = row.definition;
        this.open({ name: expression, expression, watch: key });
      }),
      vscode.commands.registerCommand('dvm.tensor.showVariable', ({ variable }: VariableContext) => {
        if (!variable) return;
        const { name, evaluateName, memoryReference } = variable;
        this.open({ name, ...(evaluateName || !memoryReference ? { expression: evaluateName ?? name } : { memoryReference }) });
      }),
      sessions.onRunState((session) => {
        if (sessions.isStopped(session)) for (const page of this.pages.values()) void this.draw(page);
      }),
      model.onSnapshot(({ key, snapshot }) => {
        const page = [...this.pages.values()].find((p) => p.target.watch === key);
        // A sample of statistics alone moves the history; the values shown stay.
        if (page?.panel.visible) void this.post(page, snapshot.data || snapshot.placeholder ? { tensor: snapshot } : {});
      }),
    ];
  }

  private open(target: Target): void {
    const shown = this.pages.get(target.name);
    if (shown) {
      shown.panel.reveal();
      void this.draw(shown);
      return;
    }
    const panel = vscode.window.createWebviewPanel('dvm.tensor', l10n.t`Tensor ${target.name}`, vscode.ViewColumn.Beside, {
      enableScripts: true,
      localResourceRoots: [mediaOf(this.extension)],
    });
    const page = { panel, target };
    this.pages.set(target.name, page);
    // Copying values costs more than statistics: only while someone looks.
    if (target.watch !== undefined) void this.model.setValues(target.watch, true);
    panel.onDidDispose(() => {
      this.pages.delete(target.name);
      if (target.watch !== undefined) void this.model.setValues(target.watch, false);
    });
    panel.webview.onDidReceiveMessage((message: SliceMessage | { ready: true }) =>
      this.draw(page, 'slice' in message ? message.slice : undefined),
    );
    panel.webview.html = html(panel.webview, this.extension, target.name);
  }

  /** Asks for the tensor at the stop, or the newest snapshot of a running watch, and shows it. */
  private async draw(page: Page, slice?: string): Promise<void> {
    const { target } = page;
    const session = this.sessions.current();
    if (!session) return this.post(page, { reason: l10n.t('The session has ended.') });
    const watchId = target.watch === undefined ? undefined : this.model.watchId(target.watch, session);
    const stopped = this.sessions.isStopped(session);
    if (!stopped && watchId === undefined)
      return this.post(page, { reason: l10n.t('The program is running: values are shown at a stop.') });
    const { expression, memoryReference } = target;
    const args = {
      ...(stopped ? { expression, memoryReference } : { watchId }),
      ...(slice ? { slice } : {}),
      maxBytes: MAX_BYTES,
    };
    try {
      const tensor = await this.sessions.request<Tensor>('dvm/tensor', args, session);
      return this.post(page, { tensor, ...(slice ? { slice } : {}) });
    } catch (error) {
      return this.post(page, { reason: messageOf(error) });
    }
  }

  private async post(page: Page, what: Partial<TensorMessage>): Promise<void> {
    if (this.pages.get(page.target.name) !== page) return; // closed while its tensor was on the way
    const series = page.target.watch === undefined ? undefined : this.model.seriesOf(page.target.watch);
    const message: TensorMessage = {
      ...what,
      history: series?.history().map((v) => (Number.isFinite(v) ? v : null)) ?? [],
      ...(series?.last ? { step: series.last.step } : {}),
      ...(series?.lastStats ? { lastStats: series.lastStats } : {}),
    };
    await page.panel.webview.postMessage(message);
  }

  dispose(): void {
    this.pages.forEach(({ panel }) => panel.dispose());
    this.disposables.forEach((d) => d.dispose());
  }
}

function html(webview: vscode.Webview, extension: vscode.Uri, name: string): string {
  const body = `<h1 id="head">${escapeHtml(name)}</h1><p id="note" role="status"></p><main>
<section><div id="axes"></div><canvas id="map" width="320" height="320" tabindex="0" role="img" aria-label="${escapeHtml(l10n.t('Heat map; arrow keys read cells'))}"></canvas>
<p id="scale"></p><p id="cell" aria-live="polite"></p></section>
<section><table id="stats"></table><h2>${l10n.t('Histogram')}</h2><canvas id="bars" width="280" height="90" role="img" aria-label="${escapeHtml(l10n.t('Histogram'))}"></canvas>
<div id="past"><h2 id="pastTitle">${l10n.t('History')}</h2><canvas id="line" width="280" height="90" role="img" aria-label="${escapeHtml(l10n.t('History'))}"></canvas></div></section>
</main>`;
  return pageHtml(webview, extension, { title: l10n.t`Tensor ${name}`, script: 'tensor', style: STYLE, body });
}

const STYLE = `
body { font: var(--vscode-font-size) var(--vscode-font-family); color: var(--vscode-foreground); padding: 8px 16px; }
main { display: flex; flex-wrap: wrap; gap: 28px; align-items: flex-start; }
h1 { font-size: 1.2em; font-weight: 600; margin: 4px 0; } h2 { font-size: 1em; font-weight: 600; margin: 14px 0 4px; }
canvas { image-rendering: pixelated; border: 1px solid var(--vscode-widget-border, var(--vscode-contrastBorder, transparent)); }
canvas:focus-visible { outline: 1px solid var(--vscode-focusBorder); }
table { border-spacing: 0; font-variant-numeric: tabular-nums; }
th { text-align: left; font-weight: normal; color: var(--vscode-descriptionForeground); padding-right: 24px; }
td { text-align: right; font-family: var(--vscode-editor-font-family); }
label { display: block; margin: 4px 0; }
select { color: var(--vscode-dropdown-foreground); background: var(--vscode-dropdown-background); border: 1px solid var(--vscode-dropdown-border); }
input[type=range] { vertical-align: middle; accent-color: var(--vscode-button-background); }
#note, #cell, #scale { color: var(--vscode-descriptionForeground); min-height: 1.4em; margin: 4px 0; font-variant-numeric: tabular-nums; }
.bad { color: var(--vscode-dvm-notFinite); font-weight: 600; }
`;
