// Adding, removing and tuning tensor watches, from the view, the editor and the Variables view.
import * as l10n from '@vscode/l10n';
import * as vscode from 'vscode';
import { expressionAt } from '../editor/names';
import { assignmentAbove, statementBelow } from '../editor/scope';
import { guarded } from '../log';
import { full } from '../text';
import type { Sessions } from '../sessions';
import { chooseInstruction, watchResult, type Result } from './instructions';
import type { WatchModel } from './model';
import type { FactNode, Node, WatchNode } from './tree';

/** What VS Code hands to a command of the Variables view's context menu. */
export interface VariableContext {
  variable?: { name: string; evaluateName?: string; value?: string; memoryReference?: string; variablesReference?: number };
}

export function registerWatchCommands(model: WatchModel, sessions: Sessions, view: vscode.TreeView<Node>): vscode.Disposable[] {
  const command = (id: string, run: (...args: never[]) => unknown): vscode.Disposable =>
    vscode.commands.registerCommand(id, (...args: unknown[]) => run(...(args as never[])));
  /** The key of the watch, shown in the view while something is debugged. */
  const shown = (what: string, added: () => Promise<string>): Promise<string | undefined> =>
    guarded(l10n.t`watch ${what}`, async () => {
      const key = await added();
      if (sessions.current()) await vscode.commands.executeCommand('dvm.watch.focus', { preserveFocus: true });
      return key;
    });
  const add = (expression: string, place: Place | undefined): Promise<string | undefined> =>
    shown(expression, () => model.add({ expression, ...place }));
  /** Rows a command is about: the one clicked, with the whole selection if it is part of it. */
  const chosen = (node: WatchNode | undefined): string[] => {
    const rows = view.selection.filter((n): n is WatchNode => n.kind === 'watch');
    const all = !node ? rows : rows.some((n) => n.definition.key === node.definition.key) ? rows : [node];
    return all.map((n) => n.definition.key);
  };

  return [
    command('dvm.watch.add', async () => {
      const expression = await vscode.window.showInputBox({
        title: l10n.t('Watch a tensor'),
        prompt: l10n.t('A variable, grad(name) for its gradient, or an expression of some, such as abs(h - t).max()'),
        placeHolder: 'h',
        value: editorExpression() ?? '',
        validateInput: (text) => (text.trim() ? undefined : l10n.t('Type the name of a tensor.')),
      });
      if (expression) await add(expression.trim(), editorPlace(expression.trim()));
    }),
    command('dvm.watch.addSelection', async () => {
      const expression = editorExpression();
      if (expression) await add(expression, editorPlace(expression));
      else void vscode.window.showInformationMessage(l10n.t('Put the cursor on a tensor’s name, or select an expression.'));
    }),
    command('dvm.watch.addVariable', async (context: VariableContext) => {
      const name = context.variable?.evaluateName ?? context.variable?.name;
      return name ? add(name, await framePlace(sessions, name)) : undefined;
    }),
    command('dvm.watch.addResult', (result: Result) => shown(result.name, () => watchResult(model, sessions, result))),
    command('dvm.watch.addInstruction', () =>
      guarded('watch an instruction', async () => {
        const result = await chooseInstruction(sessions);
        if (result) await shown(result.name, () => watchResult(model, sessions, result));
      }),
    ),
    command('dvm.watch.addAt', (path: string, line: number, name: string) => add(name, { path, line })),
    command('dvm.breakOnNotFinite', (path: string, line: number, name: string) =>
      guarded(l10n.t`stop when ${name} is not finite`, () => breakOnNotFinite(path, line, name)),
    ),
    command('dvm.watch.remove', (node?: WatchNode) => model.remove(chosen(node))),
    command('dvm.watch.removeAll', () => model.remove(model.all().map((d) => d.key))),
    command('dvm.watch.rate', async (node?: WatchNode) => {
      const keys = chosen(node);
      const everyN = await askRate(model.find(keys[0] ?? '')?.everyN);
      if (everyN) await model.setRate(keys, everyN);
    }),
    command('dvm.watch.rateAll', async () => {
      const everyN = await askRate(model.all()[0]?.everyN);
      if (everyN)
        await model.setRate(
          model.all().map((d) => d.key),
          everyN,
        );
    }),
    command('dvm.watch.copy', async (node?: Node) => {
      const target = node ?? view.selection[0];
      if (target) await vscode.env.clipboard.writeText(target.kind === 'fact' ? target.exact : samplesText(model, target));
    }),
    command('dvm.watch.goto', async (node: WatchNode | FactNode) => {
      const definition = node.kind === 'watch' ? node.definition : model.find(node.key);
      if (definition?.path) await goTo(definition.path, definition.line ?? 1);
    }),
  ];
}

interface Place {
  path: string;
  line: number;
}

/** A breakpoint on the statement after the one that makes `name`: there its value is known. */
async function breakOnNotFinite(path: string, line: number, name: string): Promise<void> {
  const document = await vscode.workspace.openTextDocument(path);
  const next = statementBelow((at) => (at < document.lineCount ? document.lineAt(at).text : undefined), line - 1);
  if (next === undefined) throw new Error(l10n.t`no statement of the function follows line ${line}, so there is nowhere to stop`);
  const at = new vscode.Location(document.uri, new vscode.Position(next, 0));
  vscode.debug.addBreakpoints([new vscode.SourceBreakpoint(at, true, `not isfinite(${name}).all()`)]);
  await goTo(path, next + 1);
}

/** Shows a line of a file in the editor. */
export async function goTo(file: string, line: number, preserveFocus = false): Promise<void> {
  const at = new vscode.Position(Math.max(0, line - 1), 0);
  await vscode.window.showTextDocument(vscode.Uri.file(file), { selection: new vscode.Range(at, at), preserveFocus });
}

/** The line that makes `name`, seen from the cursor; undefined where none does: then any tensor of that name is meant. */
function editorPlace(name: string): Place | undefined {
  const editor = vscode.window.activeTextEditor;
  if (editor?.document.languageId !== 'python' || editor.document.uri.scheme !== 'file') return undefined;
  return placeIn(editor.document, editor.selection.active.line, name);
}

function placeIn(document: vscode.TextDocument, line: number, name: string): Place | undefined {
  const made = assignmentAbove((at) => document.lineAt(at).text, line, name);
  return made === undefined ? undefined : { path: document.uri.fsPath, line: made + 1 };
}

/** The selected text, else the dotted name at the cursor. */
export function editorExpression(): string | undefined {
  const editor = vscode.window.activeTextEditor;
  if (editor?.document.languageId !== 'python') return undefined;
  const { selection, document } = editor;
  if (!selection.isEmpty) return document.getText(selection).trim() || undefined;
  return expressionAt(document.lineAt(selection.active.line).text, selection.active.character)?.text;
}

/** The line that made what a variable holds now: above the line of the frame in view, which is still to run. */
async function framePlace(sessions: Sessions, name: string): Promise<Place | undefined> {
  const item = vscode.debug.activeStackItem;
  if (!(item instanceof vscode.DebugStackFrame) || item.session.type !== 'dvm') return undefined;
  const args = { threadId: item.threadId, startFrame: 0, levels: 100 };
  const answer = await sessions.request<{ stackFrames: { id: number; line: number; source?: { path?: string } }[] }>(
    'stackTrace',
    args,
    item.session,
  );
  const frame = answer.stackFrames.find((f) => f.id === item.frameId);
  if (!frame?.source?.path || frame.line < 2) return undefined;
  return placeIn(await vscode.workspace.openTextDocument(localPath(frame.source.path)), frame.line - 2, name);
}

/** In a remote window the editor turns the paths in an adapter's answers into URIs. */
const localPath = (path: string): string => (/^[\w-]{2,}:\/\//.test(path) ? vscode.Uri.parse(path).fsPath : path);

const RATES = [1, 10, 100, 1000];

async function askRate(now: number | undefined): Promise<number | undefined> {
  const items = RATES.map((n) => ({
    label: n === 1 ? l10n.t('every launch') : l10n.t`every ${n} launches`,
    description: n === now ? l10n.t('now') : '',
    everyN: n,
  }));
  const other = {
    label: l10n.t('other...'),
    description: RATES.includes(now ?? 1) ? '' : l10n.t`now every ${now ?? 1}`,
    everyN: 0,
  };
  const chosen = await vscode.window.showQuickPick([...items, other], { title: l10n.t('How often to take statistics') });
  if (!chosen) return undefined;
  if (chosen.everyN) return chosen.everyN;
  const text = await vscode.window.showInputBox({
    title: l10n.t('Take statistics every so many launches'),
    value: String(now ?? 1),
    validateInput: (t) => (/^[1-9]\d{0,8}$/.test(t.trim()) ? undefined : l10n.t`"${t}" is not a whole number from 1 on.`),
  });
  return text === undefined ? undefined : Number(text);
}

/** A watch for the clipboard: its last statistics, one a line, all digits. */
function samplesText(model: WatchModel, node: WatchNode): string {
  const series = model.seriesOf(node.definition.key);
  const stats = series?.lastStats;
  const head = `${node.definition.expression}\tstep ${series?.last?.step ?? '-'}`;
  if (!stats) return head;
  const rows = (['count', 'min', 'max', 'mean', 'std', 'zero', 'nan', 'pos_inf', 'neg_inf'] as const).map(
    (n) => `${n}\t${full(stats[n])}`,
  );
  return [head, ...rows].join('\n');
}
