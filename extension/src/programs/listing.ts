// Programs as read-only text: graph, tensor instructions or tile code, with the way back to the Python line (F12, Ctrl+click).
import * as l10n from '@vscode/l10n';
import * as vscode from 'vscode';
import { guarded } from '../log';
import type { Level, ProgramInfo, ProgramText } from '../protocol';
import type { Sessions } from '../sessions';
import { count } from '../text';

export const SCHEME = 'dvm-program';
const LEVELS: { level: Level; what: string }[] = [
  { level: 'graph', what: l10n.t('ops as captured, and how they are fused') },
  { level: 'tensor', what: l10n.t('bytecode instructions, one a tensor op') },
  { level: 'tile', what: l10n.t('what one core runs for one tile') },
];

export class Programs
  implements vscode.Disposable, vscode.TextDocumentContentProvider, vscode.DefinitionProvider, vscode.CodeLensProvider
{
  private readonly texts = new Map<string, ProgramText>();
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changed.event;
  private readonly disposables: vscode.Disposable[];

  constructor(private readonly sessions: Sessions) {
    const selector = { scheme: SCHEME };
    this.disposables = [
      this.changed,
      vscode.workspace.registerTextDocumentContentProvider(SCHEME, this),
      vscode.languages.registerDefinitionProvider(selector, this),
      vscode.languages.registerCodeLensProvider(selector, this),
      vscode.commands.registerCommand('dvm.programs', () => guarded(l10n.t('show programs'), () => this.choose())),
      vscode.commands.registerCommand('dvm.program.open', (id: number, name: string, level: Level, instructions?: number[]) =>
        guarded(l10n.t`show program ${name}`, () => this.open(id, name, level, instructions)),
      ),
    ];
  }

  async choose(): Promise<void> {
    const { programs } = await this.sessions.request<{ programs: ProgramInfo[] }>('dvm/programs');
    if (!programs.length) {
      void vscode.window.showInformationMessage(
        l10n.t('No program was captured so far: run until a captured function was called.'),
      );
      return;
    }
    const items = programs.map((p) => ({
      label: p.name,
      description: programFacts(p),
      detail: p.file ? `${vscode.workspace.asRelativePath(p.file)}:${p.line ?? 1}` : '',
      program: p,
    }));
    const chosen = await vscode.window.showQuickPick(items, { title: l10n.t('Programs'), matchOnDetail: true });
    if (!chosen) return;
    const levels = LEVELS.map(({ level, what }) => ({ label: level, description: what, level }));
    const level = await vscode.window.showQuickPick(levels, { title: l10n.t`${chosen.label}: level` });
    if (level) await this.open(chosen.program.id, chosen.program.name, level.level);
  }

  /** Opens a listing, with the lines of some of its instructions selected. */
  async open(id: number, name: string, level: Level, instructions: readonly number[] = []): Promise<void> {
    const answer = await this.sessions.request<ProgramText>('dvm/program', { id, level });
    const file = `/${name.replace(/[^\w.<>-]+/g, '_')} #${id} (${level})`;
    const uri = vscode.Uri.from({ scheme: SCHEME, path: file, query: JSON.stringify({ id, name, level }) });
    this.texts.set(uri.toString(), answer);
    this.changed.fire(uri);
    const document = await vscode.workspace.openTextDocument(uri);
    const editor = await vscode.window.showTextDocument(await vscode.languages.setTextDocumentLanguage(document, 'dvm-asm'), {
      preview: true,
    });
    const lines = (answer.lineMap ?? []).filter((e) => instructions.includes(e.instruction ?? -1)).map((e) => e.line - 1);
    if (!lines.length) {
      const first = new vscode.Position(this.firstOf(uri), 0);
      editor.selection = new vscode.Selection(first, first);
      const above = first.translate(first.line ? -1 : 0); // the levels to choose from stand between the two
      editor.revealRange(new vscode.Range(above, above), vscode.TextEditorRevealType.AtTop);
      return;
    }
    editor.selections = lines.map((line) => new vscode.Selection(line, 0, line, document.lineAt(line).text.length));
    editor.revealRange(new vscode.Range(lines[0]!, 0, lines.at(-1)!, 0), vscode.TextEditorRevealType.InCenterIfOutsideViewport);
  }

  /** The line above the first instruction: before it there may be pages of what the shapes' symbols stand for. */
  private firstOf(uri: vscode.Uri): number {
    return Math.max(0, (this.mapOf(uri)[0]?.line ?? 1) - 2);
  }

  /** Which line of a listing belongs to which instruction and source line. */
  mapOf(uri: vscode.Uri): NonNullable<ProgramText['lineMap']> {
    return this.texts.get(uri.toString())?.lineMap ?? [];
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.texts.get(uri.toString())?.text ?? l10n.t('This listing belongs to a session that has ended.');
  }

  provideDefinition(document: vscode.TextDocument, position: vscode.Position): vscode.Location | undefined {
    const entry = this.mapOf(document.uri).find((e) => e.line === position.line + 1);
    if (!entry?.file || !entry.sourceLine) return undefined;
    return new vscode.Location(vscode.Uri.file(entry.file), new vscode.Position(entry.sourceLine - 1, 0));
  }

  provideCodeLenses(document: vscode.TextDocument): vscode.CodeLens[] {
    const { id, name, level } = JSON.parse(document.uri.query) as { id: number; name: string; level: Level };
    const tops = [...new Set([0, this.firstOf(document.uri)])].map((line) => new vscode.Range(line, 0, line, 0));
    return tops.flatMap((top) =>
      LEVELS.map((l) => {
        const title = l.level === level ? `$(check) ${l.level}` : l.level;
        return new vscode.CodeLens(top, { title, tooltip: l.what, command: 'dvm.program.open', arguments: [id, name, l.level] });
      }),
    );
  }

  dispose(): void {
    this.disposables.forEach((d) => d.dispose());
  }
}

/** `3 areas · 41 instructions · 212 launches`. */
export const programFacts = (p: ProgramInfo): string =>
  [
    p.areas === 1 ? l10n.t('1 area') : l10n.t`${count(p.areas)} areas`,
    p.instructions === 1 ? l10n.t('1 instruction') : l10n.t`${count(p.instructions)} instructions`,
    p.launches === 1 ? l10n.t('1 launch') : l10n.t`${count(p.launches)} launches`,
    p.backward ? l10n.t('backward') : '',
  ]
    .filter(Boolean)
    .join(' · ');

/** Above each captured function while debugging: how it is fused; a click opens the listing. */
export class ProgramLenses implements vscode.CodeLensProvider, vscode.Disposable {
  private programs: ProgramInfo[] = [];
  private asked = 0;
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChangeCodeLenses = this.changed.event;
  private readonly disposables: vscode.Disposable[];

  constructor(private readonly sessions: Sessions) {
    this.disposables = [
      this.changed,
      vscode.languages.registerCodeLensProvider({ language: 'python' }, this),
      sessions.onRunState((session) => {
        if (sessions.isStopped(session)) void this.refresh();
      }),
      sessions.onEvent((e) => {
        // While it runs, a look every three seconds: launches are counted, not followed.
        if (e.name === 'dvm/restarted') this.forget();
        if (e.name === 'dvm/step' && Date.now() - this.asked > 3000) void this.refresh();
      }),
      sessions.onEnded(() => this.forget()),
    ];
  }

  private forget(): void {
    this.programs = [];
    this.changed.fire();
  }

  private async refresh(): Promise<void> {
    this.asked = Date.now();
    try {
      this.programs = (await this.sessions.request<{ programs: ProgramInfo[] }>('dvm/programs')).programs;
      this.changed.fire();
    } catch {
      // No agent in this process yet: no lenses.
    }
  }

  provideCodeLenses(document: vscode.TextDocument): vscode.CodeLens[] {
    if (!vscode.workspace.getConfiguration('dvm', document.uri).get<boolean>('codeLens', true)) return [];
    const names = new Set(this.programs.map((p) => p.name));
    return [...names].flatMap((name) => {
      const line = capturedLine(document, name);
      return line === undefined
        ? []
        : this.lensesOf(name).map((command) => new vscode.CodeLens(new vscode.Range(line, 0, line, 0), command));
    });
  }

  /** The forward and the backward program that ran most; the rest, such as those cut at a breakpoint, behind one more lens. */
  private lensesOf(name: string): vscode.Command[] {
    const named = this.programs.filter((p) => p.name === name).sort((a, b) => b.launches - a.launches);
    const main = [named.find((p) => !p.backward), named.find((p) => p.backward)].filter((p) => p !== undefined);
    const commands: vscode.Command[] = main.map((p) => ({
      title: `${p.backward ? '⟲ ' : ''}${programFacts(p)}`,
      tooltip: l10n.t`Program ${p.id}: open its listing`,
      command: 'dvm.program.open',
      arguments: [p.id, p.name, 'graph'],
    }));
    const rest = named.length - main.length;
    if (rest > 0)
      commands.push({ title: rest === 1 ? l10n.t('1 more program') : l10n.t`${rest} more programs`, command: 'dvm.programs' });
    return commands;
  }

  dispose(): void {
    this.disposables.forEach((d) => d.dispose());
  }
}

/** Line of the `def` a program was captured from, in this document: decorated with jit or kernel, or passed to it. */
export function capturedLine(document: vscode.TextDocument, name: string): number | undefined {
  const last = name.split(/[.\s]/).at(-1)?.replace(/\W/g, '') ?? '';
  const definition = new RegExp(`^\\s*(async\\s+)?def\\s+${last}\\b`);
  const passed = new RegExp(`\\b(jit|kernel)\\(\\s*${last}\\b`);
  for (let line = 0; line < document.lineCount; line++) {
    if (!last || !definition.test(document.lineAt(line).text)) continue;
    if (passed.test(document.getText())) return line;
    for (let at = line - 1; at >= 0 && /^\s*@/.test(document.lineAt(at).text); at--)
      if (/\b(jit|kernel)\b/.test(document.lineAt(at).text)) return line;
  }
  return undefined;
}
