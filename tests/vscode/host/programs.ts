import assert from 'node:assert/strict';
import * as vscode from 'vscode';
import { ProgramTree, type InstructionNode, type Node } from '../../../extension/src/programs/tree';
import type { Sessions } from '../../../extension/src/sessions';
import type { Tests } from './groups';
import { api, stoppedAt, trainFile, until } from './session';

/** The view in sight, with what the stand-in's programs are. */
async function shown(): Promise<ProgramTree> {
  await stoppedAt(10);
  await vscode.commands.executeCommand('dvm.programsView.focus');
  const { programTree } = await api();
  await until('functions', async () => (await programTree.getChildren()).length);
  return programTree;
}

const labels = (tree: ProgramTree, nodes: Node[]): unknown[] => nodes.map((n) => tree.getTreeItem(n).label);

async function child(tree: ProgramTree, parent: Node | undefined, id: string): Promise<Node> {
  const found = (await tree.getChildren(parent)).find((n) => n.id === id);
  return found ?? assert.fail(`no ${id}: ${(await tree.getChildren(parent)).map((n) => n.id).join(', ')}`);
}

export const programs: Tests = {
  'a step by tile instruction is the session’s, of the thread that is looked at, and says where there is none': async () => {
    await vscode.commands.executeCommand('dvm.stepTile'); // no session: told, not thrown
    const session = await stoppedAt(10);
    await vscode.commands.executeCommand('dvm.stepTile');
    const { stackFrames } = (await session.customRequest('stackTrace', { threadId: 1 })) as { stackFrames: { line: number }[] };
    assert.equal(stackFrames[0]?.line, 12);
  },

  'a report of a fault is a text with versions, the doctor’s words and the log': async () => {
    await vscode.commands.executeCommand('dvm.reportIssue');
    const document = vscode.window.activeTextEditor?.document;
    assert.deepEqual([document?.isUntitled, document?.languageId], [true, 'markdown']);
    assert.match(
      document?.getText() ?? '',
      /Nothing was sent[^]*VS Code: \d[^]*## dvm doctor[^]*Python[^]*## The end of the log/,
    );
  },

  'functions, programs, areas and instructions, each opened when it is asked for': async () => {
    const tree = await shown();
    const step = await child(tree, undefined, 'f/train_step');
    assert.match(String(tree.getTreeItem(step).description), /^pays · 5\.38 µs a launch · \d+ launches$/);
    assert.deepEqual(labels(tree, await tree.getChildren(step)), [
      'pays',
      'time of a launch',
      'code was ready',
      'forward #1',
      'backward #2',
    ]);
    const forward = await child(tree, step, 'p/1');
    assert.deepEqual(labels(tree, await tree.getChildren(forward)), ['area 0 · vector', 'area 1 · vector', 'no work']);
    const area = await child(tree, forward, 'p/1/a0');
    assert.equal(tree.getTreeItem(area).description, '2.69 µs · 3 instructions · ends: nothing more to fuse');
    const rows = await tree.getChildren(area);
    assert.deepEqual(labels(tree, rows), ['ends here because', '%1 = MUL(%i0, 2.0)', '%2 = MUL(%i0, 2.0)', '%3 = MUL(%i0, 2.0)']);
    const item = tree.getTreeItem(rows[1]!);
    assert.equal(item.description, 'f32[4,3] · h · train.py:9');
    assert.equal(item.accessibilityInformation?.label, '%1 = MUL(%i0, 2.0), f32[4,3], h, train.py:9');
    await vscode.commands.executeCommand(item.command!.command, ...(item.command!.arguments ?? []));
    await until('its line', () => vscode.window.activeTextEditor?.selection.active.line === 8);
    assert.equal(vscode.window.activeTextEditor?.document.uri.fsPath, trainFile().fsPath);
  },

  'an area of ten thousand instructions comes in ranges': async () => {
    const tree = await shown();
    const step = await child(tree, undefined, 'f/train_step');
    const area = await child(tree, await child(tree, step, 'p/2'), 'p/2/a1');
    const parts = (await tree.getChildren(area)).slice(1);
    assert.deepEqual([parts.length, labels(tree, parts)[19]], [20, '9500 … 9999']);
    const rows = (await tree.getChildren(parts[19])) as InstructionNode[];
    assert.deepEqual([rows.length, rows[0]?.instruction.index], [500, 9503]);
  },

  'a row stops the program, is watched, listed and copied': async () => {
    const tree = await shown();
    const { watches } = await api();
    const forward = await child(tree, await child(tree, undefined, 'f/train_step'), 'p/1');
    const rows = (await tree.getChildren(await child(tree, forward, 'p/1/a0'))) as InstructionNode[];
    const [named, second] = [rows[1]!, rows[2]!];
    await vscode.commands.executeCommand('dvm.program.break', second);
    assert.equal(tree.getTreeItem(second).contextValue, 'instruction.stop.place');
    assert.match(tree.getTreeItem(second).accessibilityInformation?.label ?? '', /stops here$/);
    await vscode.commands.executeCommand('dvm.program.toggleBreak', second);
    assert.equal(tree.getTreeItem(second).contextValue, 'instruction.place');
    await vscode.commands.executeCommand('dvm.program.watch', named);
    await vscode.commands.executeCommand('dvm.program.watch', second);
    const asked = watches.all().map((d) => [d.expression, d.line, d.of?.instruction]);
    assert.deepEqual(asked, [
      ['h', 9, undefined],
      ['%2 of train_step #1', undefined, 1],
    ]);
    await vscode.commands.executeCommand('dvm.program.tensor', second);
    const editor = await until('the listing', () =>
      vscode.window.activeTextEditor?.document.uri.scheme === 'dvm-program' ? vscode.window.activeTextEditor : undefined,
    );
    assert.equal(editor.selection.start.line, 2); // the stand-in's lines begin behind a head
    await vscode.commands.executeCommand('dvm.program.copy', second);
    assert.match(await vscode.env.clipboard.readText(), /^%2 = MUL\(%i0, 2\.0\) f32\[4,3\] {2}; .*train\.py:10$/);
    await vscode.debug.stopDebugging();
    await until('the watch of the instruction to go with its session', () => watches.all().length === 1);
  },

  'a source line leads to its instructions, a listing back to the line, and its words are explained': async () => {
    await stoppedAt(10);
    const source = await vscode.window.showTextDocument(trainFile());
    source.selection = new vscode.Selection(8, 0, 8, 0);
    await vscode.commands.executeCommand('dvm.line.instructions');
    const editor = await until('the listing', () =>
      vscode.window.activeTextEditor?.document.uri.scheme === 'dvm-program' ? vscode.window.activeTextEditor : undefined,
    );
    assert.equal(editor.document.languageId, 'dvm-asm');
    assert.deepEqual(
      editor.selections.map((s) => s.start.line),
      [3, 4],
    );
    const { uri } = editor.document;
    const at = new vscode.Position(2, editor.document.lineAt(2).text.indexOf('MATMUL') + 2);
    const hovers = await vscode.commands.executeCommand<vscode.Hover[]>('vscode.executeHoverProvider', uri, at);
    const texts = hovers.flatMap((h) => h.contents.map((c) => (c as vscode.MarkdownString).value));
    assert.match(texts.join('\n'), /\*\*MATMUL\*\* `0x38`/);
    const links = await vscode.commands.executeCommand<vscode.DocumentLink[]>('vscode.executeLinkProvider', uri);
    assert.ok(links.some((l) => l.target?.fsPath === trainFile().fsPath && l.target.fragment === 'L8'));
  },

  'rows of programs that are gone are let go': async () => {
    let ids = [1, 2, 12];
    const event = new vscode.EventEmitter().event;
    const sessions = {
      ...{ onReady: event, onRunState: event, onEvent: event, onEnded: event },
      ...{ current: () => ({ id: 's' }), isReady: () => true, all: () => [] },
      request: (command: string) =>
        Promise.resolve(
          command === 'dvm/programs'
            ? { programs: ids.map((id) => ({ id, name: `f${id}`, launches: 1, shapes: [] })) }
            : { areas: [{ index: 0, instructions: 3, reason: '' }], noWork: 0 },
        ),
    } as unknown as Sessions;
    const tree = new ProgramTree(sessions);
    const opened = async (): Promise<number> => {
      for (const name of await tree.getChildren())
        for (const program of await tree.getChildren(name)) if (program.kind === 'program') await tree.getChildren(program);
      return tree.size;
    };
    await tree.refresh();
    const whole = await opened();
    const kept = (await tree.getChildren())[0];
    ids = [1];
    await tree.refresh();
    assert.equal(tree.size, whole / 3);
    assert.equal((await tree.getChildren())[0], kept, 'a row stays the row it was');
    for (let id = 100; id < 200; id++) {
      ids = [1, id];
      await tree.refresh();
      assert.equal(await opened(), (2 * whole) / 3);
    }
    tree.dispose();
  },

  'a view in sight follows the program, a hidden one asks for nothing': async () => {
    const tree = await shown();
    vscode.debug.removeBreakpoints(vscode.debug.breakpoints);
    await vscode.commands.executeCommand('workbench.action.debug.continue');
    const first = tree.refreshes;
    await until('the list to follow', () => tree.refreshes >= first + 2);
    await vscode.commands.executeCommand('workbench.view.explorer');
    await until('the view to be hidden', () => !tree.visible);
    const hidden = tree.refreshes;
    const { sessions } = await api();
    const step = async (): Promise<number> => (await sessions.request<{ step: number }>('dvm/status')).step;
    const from = await step();
    await until('steps', async () => (await step()) > from + 100);
    assert.equal(tree.refreshes, hidden);
    await vscode.commands.executeCommand('workbench.view.debug');
  },
};
