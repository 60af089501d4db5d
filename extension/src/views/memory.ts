// The Memory View: a page the adapter draws; where it cannot, a plain chart of the buffers it reports.
import { randomBytes } from 'node:crypto';
import * as vscode from 'vscode';
import { guarded } from '../log';
import type { MemoryAnswer, MemoryBuffer } from '../protocol';
import type { Sessions } from '../sessions';
import { bytes, count } from '../text';

export class MemoryView implements vscode.Disposable {
  private panel: vscode.WebviewPanel | undefined;
  private readonly disposables: vscode.Disposable[];

  constructor(private readonly sessions: Sessions) {
    this.disposables = [
      vscode.commands.registerCommand('dvm.memory', () => guarded('memory view', () => this.open())),
      vscode.window.onDidChangeActiveColorTheme(() => {
        if (this.panel && sessions.current()) void guarded('memory view', () => this.draw());
      }),
      sessions.onRunState((session) => {
        if (this.panel?.visible && sessions.isStopped(session)) void guarded('memory view', () => this.draw());
      }),
    ];
  }

  private async open(): Promise<void> {
    if (!this.panel) {
      const options = { enableScripts: true, retainContextWhenHidden: false, enableFindWidget: false };
      this.panel = vscode.window.createWebviewPanel('dvm.memory', 'Memory View', vscode.ViewColumn.Active, options);
      this.panel.onDidDispose(() => (this.panel = undefined));
    }
    this.panel.reveal();
    await this.draw();
  }

  private async draw(): Promise<void> {
    const answer = await this.sessions.request<MemoryAnswer>('dvm/memory', { html: true });
    const kind = vscode.window.activeColorTheme.kind;
    const dark = kind === vscode.ColorThemeKind.Dark || kind === vscode.ColorThemeKind.HighContrast;
    if (this.panel) this.panel.webview.html = answer.html ? fitted(answer.html, dark) : plainPage(answer);
  }

  dispose(): void {
    this.panel?.dispose();
    this.disposables.forEach((d) => d.dispose());
  }
}

/** The adapter's page for a browser, made to fit the editor: its theme instead of the system's, and only that page's own script may run. */
export function fitted(page: string, dark: boolean): string {
  const nonce = randomBytes(16).toString('base64');
  const policy = `default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'nonce-${nonce}'`;
  const colours = `:root{--ground:var(--vscode-editor-background);--ink:var(--vscode-foreground);--soft:var(--vscode-descriptionForeground)}`;
  return page
    .replace(/@media\s*\(prefers-color-scheme:\s*dark\)/g, dark ? '@media all' : '@media not all')
    .replace(/<script>/g, `<script nonce="${nonce}">`)
    .replace('<head>', `<head><meta http-equiv="Content-Security-Policy" content="${policy}">`)
    .replace('</head>', `<style>${colours}body{font-family:var(--vscode-font-family)}</style></head>`);
}

/** Live bytes over time, stacked by class, as one SVG; colours are the theme's chart colours. */
export function plainPage(answer: MemoryAnswer): string {
  const buffers = answer.buffers ?? [];
  const classes = [...new Set(buffers.map(classOf))];
  const end = Math.max(1, ...buffers.map((b) => Math.max(b.born, b.freed ?? 0))) + 1;
  const columns = 240;
  const live = classes.map((name) =>
    levels(
      buffers.filter((b) => classOf(b) === name),
      end,
      columns,
    ),
  );
  const top = Math.max(1, ...Array.from({ length: columns }, (_, i) => live.reduce((sum, l) => sum + (l[i] ?? 0), 0)));
  const below = new Float64Array(columns);
  const areas = classes.map((name, k) => {
    const rows = Array.from({ length: columns }, (_, i) => {
      const low = below[i] ?? 0;
      const high = low + (live[k]?.[i] ?? 0);
      below[i] = high;
      return { x: (i / (columns - 1)) * 1000, low: 300 - (low / top) * 290, high: 300 - (high / top) * 290 };
    });
    const line = [
      ...rows.map((r) => `${r.x.toFixed(1)},${r.high.toFixed(1)}`),
      ...rows.reverse().map((r) => `${r.x.toFixed(1)},${r.low.toFixed(1)}`),
    ];
    return `<polygon class="c${k % 6}" points="${line.join(' ')}"><title>${html(name)}</title></polygon>`;
  });
  const legend = classes.map((name, k) => `<span><i class="c${k % 6}"></i>${html(name)}</span>`);
  const colours = ['blue', 'green', 'orange', 'purple', 'yellow', 'red'].map(
    (c, k) => `.c${k}{fill:var(--vscode-charts-${c});background:var(--vscode-charts-${c})}`,
  );
  return `<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Memory View</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>body{font:var(--vscode-font-size) var(--vscode-font-family);color:var(--vscode-foreground)}
svg{width:100%;height:300px}span{margin-right:1.5em}i{display:inline-block;width:.8em;height:.8em;margin-right:.4em}${colours.join('')}</style></head>
<body><p>step ${count(answer.step ?? 0)} · peak ${bytes(answer.peak?.bytes ?? top)} · ${count(buffers.length)} buffers ·
${count(answer.copies ?? 0)} copies, ${count(answer.copiesAvoided ?? 0)} avoided</p>
<svg viewBox="0 0 1000 300" preserveAspectRatio="none" role="img" aria-label="Live bytes over time">${areas.join('')}</svg><p>${legend.join('')}</p></body></html>`;
}

const classOf = (b: MemoryBuffer): string => b.cls ?? b.class ?? 'activation';

/** Live bytes of some buffers at evenly spaced moments. */
function levels(buffers: readonly MemoryBuffer[], end: number, columns: number): Float64Array {
  const change = new Float64Array(columns + 1);
  const column = (t: number): number => Math.min(columns, Math.max(0, Math.round((t / end) * (columns - 1))));
  for (const b of buffers) {
    const born = column(b.born);
    const freed = b.freed === null || b.freed < 0 ? columns : Math.max(born + 1, column(b.freed));
    change[born] = (change[born] ?? 0) + b.bytes;
    change[freed] = (change[freed] ?? 0) - b.bytes;
  }
  let sum = 0;
  return change.map((d) => (sum += d)).subarray(0, columns);
}

const html = (s: string): string =>
  s.replace(/[&<>"]/g, (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[c] ?? c);
