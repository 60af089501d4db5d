// The shell of a page: its language and title, a policy that runs our script alone, and the texts in the editor's language.
import { randomBytes } from 'node:crypto';
import * as vscode from 'vscode';

export interface PageParts {
  title: string;
  /** Name of the bundle in extension/dist: `memory` is memory.js. */
  script: string;
  /** Whether there is a style sheet of that name as well. */
  sheet?: boolean;
  style?: string;
  /** What is in the body, as HTML. */
  body: string;
}

/** Where the bundles of pages lie; the only place a page may load from. */
export const mediaOf = (extension: vscode.Uri): vscode.Uri => vscode.Uri.joinPath(extension, 'extension', 'dist');

export const escapeHtml = (text: string): string => text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);

export function pageHtml(webview: vscode.Webview, extension: vscode.Uri, parts: PageParts): string {
  const nonce = randomBytes(16).toString('base64');
  const uri = (name: string): string => webview.asWebviewUri(vscode.Uri.joinPath(mediaOf(extension), name)).toString();
  const policy = [
    "default-src 'none'",
    'img-src data:',
    `style-src ${webview.cspSource} 'unsafe-inline'`,
    `font-src ${webview.cspSource}`,
    `script-src 'nonce-${nonce}'`,
  ].join('; ');
  const words = JSON.stringify(vscode.l10n.bundle ?? {}).replaceAll('<', '\\u003c');
  return `<!DOCTYPE html><html lang="${vscode.l10n.bundle ? vscode.env.language : 'en'}"><head><meta charset="utf-8">
<title>${escapeHtml(parts.title)}</title>
<meta http-equiv="Content-Security-Policy" content="${policy}">
<style>body { color: var(--vscode-foreground); background: var(--vscode-editor-background); }</style>
${parts.sheet ? `<link rel="stylesheet" href="${uri(`${parts.script}.css`)}">` : ''}
${parts.style ? `<style>${parts.style}</style>` : ''}
</head><body>${parts.body}<script type="application/json" id="l10n">${words}</script>
<script nonce="${nonce}" src="${uri(`${parts.script}.js`)}"></script></body></html>`;
}
