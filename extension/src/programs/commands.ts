// What can be done with a row of the Programs view.
import * as l10n from '@vscode/l10n';
import * as vscode from 'vscode';
import { guarded } from '../log';
import type { Level } from '../protocol';
import type { Sessions } from '../sessions';
import { goTo } from '../watch/commands';
import type { WatchModel } from '../watch/model';
import type { Programs } from './listing';
import { splitText } from './model';
import type { InstructionNode, Node, ProgramTree } from './tree';

const LISTINGS: [string, Level][] = [
  ['dvm.program.graph', 'graph'],
  ['dvm.program.tensor', 'tensor'],
  ['dvm.program.tile', 'tile'],
];

export function registerProgramCommands(
  tree: ProgramTree,
  view: vscode.TreeView<Node>,
  sessions: Sessions,
  watches: WatchModel,
  listings: Programs,
): vscode.Disposable[] {
  /** The row a command is about: the one clicked, else the one with the keyboard's selection. */
  const command = (id: string, run: (node: Node, ...more: unknown[]) => Promise<unknown>): vscode.Disposable =>
    vscode.commands.registerCommand(id, async (given?: Node, ...more: unknown[]) => {
      const node = given ?? view.selection[0];
      if (node) await run(node, ...more);
    });
  const instruction = (id: string, what: string, run: (node: InstructionNode, ...more: unknown[]) => Promise<unknown>) =>
    command(id, (node, ...more) =>
      node.kind === 'instruction' ? guarded(what, () => run(node, ...more)) : Promise.resolve(undefined),
    );

  return [
    ...LISTINGS.map(([id, level]) =>
      command(id, async (node) => {
        if (!('program' in node)) return;
        const { program, name } = node;
        await guarded(l10n.t`show program ${name}`, () => listings.open(program, name, level, numbersOf(node)));
      }),
    ),
    instruction('dvm.program.goto', l10n.t('go to the line'), async ({ instruction: i }, preserveFocus) => {
      if (i.file && i.line) await goTo(i.file, i.line, preserveFocus === true);
    }),
    instruction('dvm.program.watch', l10n.t('watch the tensor'), async (node) => {
      const { instruction: i, program, name } = node;
      const session = sessions.current();
      if (i.name && i.file && i.line && !i.backward) await watches.add({ expression: i.name, path: i.file, line: i.line });
      else if (session) {
        const expression = l10n.t`${splitText(i.text).call.split(' ')[0] ?? ''} of ${name} #${program}`;
        await watches.add({ expression, of: { session: session.id, program, instruction: i.index } });
      }
      await vscode.commands.executeCommand('dvm.watch.focus', { preserveFocus: true });
    }),
    ...(['dvm.program.break', 'dvm.program.unbreak', 'dvm.program.toggleBreak'] as const).map((id) =>
      instruction(id, l10n.t('break at the instruction'), async ({ instruction: i, program }) => {
        const on = id === 'dvm.program.toggleBreak' ? !i.breakpoint : id === 'dvm.program.break';
        const answer = await sessions.request<{ breakpoints: { program: number; instruction: number }[] }>(
          'dvm/breakInstruction',
          {
            program,
            instruction: i.index,
            on,
          },
        );
        tree.markStops(answer.breakpoints);
      }),
    ),
    command('dvm.program.copy', async (node) => vscode.env.clipboard.writeText(copied(tree, node))),
    vscode.commands.registerCommand('dvm.programs.refresh', () => tree.refresh()),
  ];
}

/** Instructions to show in a listing that is opened from a row. */
function numbersOf(node: Node): number[] {
  return node.kind === 'instruction' ? [node.instruction.index] : [];
}

/** An instruction with its place, any other row as it reads. */
function copied(tree: ProgramTree, node: Node): string {
  if (node.kind === 'instruction') {
    const { text, file, line } = node.instruction;
    return file ? `${text}  ; ${file}:${line}` : text;
  }
  const { label, description } = tree.getTreeItem(node);
  return [label, description].filter(Boolean).join('  ');
}
