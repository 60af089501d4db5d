// Programs as read-only text: graph, tensor instructions or tile code, with the way back to the Python line (F12, Ctrl+click).
import path from 'node:path';
import * as vscode from 'vscode';
import { guarded } from '../log';
import type { Level, ProgramInfo, ProgramText } from '../protocol';
import type { Sessions } from '../sessions';
import { count } from '../text';

const SCHEME = 'dvm-program';
const LEVELS: { level: Level; what: string }[] = [
  { level: 'graph', what: 'ops as captured, and how they are fused' },
  { level: 'tensor', what: 'bytecode instructions, one a tensor op' },
  { level: 'tile', what: 'what one core runs for one tile' },
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
      vscode.commands.registerCommand('dvm.programs', () => guarded('show programs', () => this.choose())),
      vscode.commands.registerCommand('dvm.program.open', (id: number, name: string, level: Level) =>
        guarded(`show program ${name}`, () => this.open(id, name, level)),
      ),
    ];
  }

  async choose(): Promise<void> {
    const { programs } = await this.sessions.request<{ programs: ProgramInfo[] }>('dvm/programs');
    if (!programs.length) {
      void vscode.window.showInformationMessage('No program was captured so far: run until a captured function was called.');
      return;
    }
    const items = programs.map((p) => ({
      label: p.name,
      description: programFacts(p),
      detail: p.file ? `${vscode.workspace.asRelativePath(p.file)}:${p.line ?? 1}` : '',
      program: p,
    }));
    const chosen = await vscode.window.showQuickPick(items, { title: 'Programs', matchOnDetail: true });
    if (!chosen) return;
    const levels = LEVELS.map(({ level, what }) => ({ label: level, description: what, level }));
    const level = await vscode.window.showQuickPick(levels, { title: `${chosen.label}: level` });
    if (level) await this.open(chosen.program.id, chosen.program.name, level.level);
  }

  async open(id: number, name: string, level: Level): Promise<void> {
    const answer = await this.sessions.request<ProgramText>('dvm/program', { id, level });
    const file = `/${name.replace(/[^\w.<>-]+/g, '_')} #${id} (${level})`;
    const uri = vscode.Uri.from({ scheme: SCHEME, path: file, query: JSON.stringify({ id, name, level }) });
    this.texts.set(uri.toString(), answer);
    this.changed.fire(uri);
    const document = await vscode.workspace.openTextDocument(uri);
    await vscode.window.showTextDocument(await vscode.languages.setTextDocumentLanguage(document, 'dvm-listing'), {
      preview: true,
    });
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.texts.get(uri.toString())?.text ?? 'This listing belongs to a session that has ended.';
  }

  provideDefinition(document: vscode.TextDocument, position: vscode.Position): vscode.Location | undefined {
    const map = this.texts.get(document.uri.toString())?.lineMap ?? [];
    const entry = map.find((e) => e.line === position.line + 1);
    if (!entry?.file || !entry.sourceLine) return undefined;
    return new vscode.Location(vscode.Uri.file(entry.file), new vscode.Position(entry.sourceLine - 1, 0));
  }

  provideCodeLenses(document: vscode.TextDocument): vscode.CodeLens[] {
    const { id, name, level } = JSON.parse(document.uri.query) as { id: number; name: string; level: Level };
    const top = new vscode.Range(0, 0, 0, 0);
    return LEVELS.map((l) => {
      const title = l.level === level ? `$(check) ${l.level}` : l.level;
      return new vscode.CodeLens(top, { title, tooltip: l.what, command: 'dvm.program.open', arguments: [id, name, l.level] });
    });
  }

  dispose(): void {
    this.disposables.forEach((d) => d.dispose());
  }
}

/** `3 areas · 41 instructions · 212 launches`. */
export const programFacts = (p: ProgramInfo): string =>
  [
    `${count(p.areas)} area${p.areas === 1 ? '' : 's'}`,
    `${count(p.instructions)} instruction${p.instructions === 1 ? '' : 's'}`,
    `${count(p.launches)} launch${p.launches === 1 ? '' : 'es'}`,
    p.backward ? 'backward' : '',
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
        if (e.name === 'dvm/step' && Date.now() - this.asked > 3000) void this.refresh();
      }),
      sessions.onEnded(() => {
        this.programs = [];
        this.changed.fire();
      }),
    ];
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
    const here = this.programs.filter((p) => p.file && path.normalize(p.file) === document.uri.fsPath && p.line);
    return here.map((p) => {
      const line = definitionLine(document, Math.min(p.line ?? 1, document.lineCount) - 1, p.name);
      const title = `${p.backward ? '⟲ ' : ''}${programFacts(p)}`;
      const tooltip = `Program ${p.id} of ${p.name}: open its listing`;
      return new vscode.CodeLens(new vscode.Range(line, 0, line, 0), {
        title,
        tooltip,
        command: 'dvm.program.open',
        arguments: [p.id, p.name, 'graph'],
      });
    });
  }

  dispose(): void {
    this.disposables.forEach((d) => d.dispose());
  }
}

/** The `def` a program was captured from: at its line or the nearest one above it. */
function definitionLine(document: vscode.TextDocument, line: number, name: string): number {
  const last = name.split(/[.\s]/).at(-1) ?? name;
  for (let at = line; at >= 0; at--)
    if (new RegExp(`^\\s*(async\\s+)?def\\s+${last.replace(/\W/g, '')}\\b`).test(document.lineAt(at).text)) return at;
  return line;
}
