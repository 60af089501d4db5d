// The language of listings, dvm-asm: hovers on instructions, links to source lines, and the way from a source line to its instructions.
import * as l10n from '@vscode/l10n';
import * as vscode from 'vscode';
import { guarded } from '../log';
import type { ProgramInfo } from '../protocol';
import type { Sessions } from '../sessions';
import { baseName } from '../text';
import { find, hoverText } from './instructions';
import { SCHEME, type Programs } from './listing';
import { programDescription, programLabel, shortName } from './model';

const WORD = /[A-Za-z_]\w*/;

export class AsmHovers implements vscode.HoverProvider {
  provideHover(document: vscode.TextDocument, position: vscode.Position): vscode.Hover | undefined {
    const range = document.getWordRangeAtPosition(position, WORD);
    // A name in a comment (a function's, a variable's) is no instruction.
    const comment = document.lineAt(position.line).text.indexOf(';');
    if (!range || (comment >= 0 && range.start.character > comment)) return undefined;
    const found = find(document.getText(range));
    return (
      found &&
      new vscode.Hover(
        hoverText(found).map((text) => new vscode.MarkdownString(text)),
        range,
      )
    );
  }
}

/** `model.py:42` behind an instruction is a link to that line. */
export class AsmLinks implements vscode.DocumentLinkProvider {
  constructor(private readonly listings: Programs) {}

  provideDocumentLinks(document: vscode.TextDocument): vscode.DocumentLink[] {
    return this.listings.mapOf(document.uri).flatMap((entry) => {
      if (!entry.file || !entry.sourceLine || entry.line > document.lineCount) return [];
      const place = `${baseName(entry.file)}:${entry.sourceLine}`;
      const at = document.lineAt(entry.line - 1).text.lastIndexOf(place);
      if (at < 0) return [];
      const range = new vscode.Range(entry.line - 1, at, entry.line - 1, at + place.length);
      return new vscode.DocumentLink(range, vscode.Uri.file(entry.file).with({ fragment: `L${entry.sourceLine}` }));
    });
  }
}

/** Opens the instructions a source line has become, selected in their listing; asks where several programs have some. */
async function showLine(sessions: Sessions, listings: Programs): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  if (editor?.document.languageId !== 'python') {
    void vscode.window.showInformationMessage(l10n.t('Put the cursor on a line of a captured function.'));
    return;
  }
  const args = { path: editor.document.uri.fsPath, line: editor.selection.active.line + 1 };
  const { programs } = await sessions.request<{ programs: (ProgramInfo & { found: number[] })[] }>('dvm/line', args);
  if (!programs.length) {
    void vscode.window.showInformationMessage(l10n.t`Line ${args.line} has made no instruction so far.`);
    return;
  }
  const items = programs.map((p) => ({
    label: `${shortName(p.name)} · ${programLabel(p)}`,
    description: programDescription(p),
    program: p,
  }));
  const title = l10n.t`Programs with instructions of line ${args.line}`;
  const chosen = items.length === 1 ? items[0] : await vscode.window.showQuickPick(items, { title });
  if (chosen) await listings.open(chosen.program.id, chosen.program.name, 'tensor', chosen.program.found);
}

export function registerAsm(sessions: Sessions, listings: Programs): vscode.Disposable[] {
  const selector = [{ language: 'dvm-asm' }, { scheme: SCHEME }];
  return [
    vscode.languages.registerHoverProvider(selector, new AsmHovers()),
    vscode.languages.registerDocumentLinkProvider({ scheme: SCHEME }, new AsmLinks(listings)),
    vscode.commands.registerCommand('dvm.line.instructions', () =>
      guarded(l10n.t('show the line’s instructions'), () => showLine(sessions, listings)),
    ),
  ];
}
