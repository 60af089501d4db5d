// The rows of the Programs view: what each node shows, says to a screen reader, and tells on hover.
import * as l10n from '@vscode/l10n';
import * as vscode from 'vscode';
import type { Advice, AreaInfo, InstructionInfo, ProgramInfo } from '../protocol';
import * as model from './model';

export interface InProgram {
  id: string;
  program: number;
  name: string;
}
export type Node =
  | { kind: 'function'; id: string; name: string }
  | { kind: 'fact'; id: string; fact: model.Fact }
  | ({ kind: 'program' } & InProgram)
  | ({ kind: 'area'; area: AreaInfo } & InProgram)
  | ({ kind: 'range'; area: number; from: number; to: number } & InProgram)
  | ({ kind: 'rest'; count: number } & InProgram)
  | ({ kind: 'instruction'; instruction: InstructionInfo } & InProgram);
export type InstructionNode = Extract<Node, { kind: 'instruction' }>;

/** What the rows are made of, as it is known now. */
export interface Known {
  programs: ReadonlyMap<number, ProgramInfo>;
  functions: ReadonlyMap<string, ProgramInfo[]>;
  advice: Readonly<Record<string, Advice>>;
}

export function itemOf(node: Node, known: Known): vscode.TreeItem {
  const item = plain(node, known);
  item.id = node.id;
  const spoken = [item.label as string, typeof item.description === 'string' ? item.description.replaceAll(' · ', ', ') : ''];
  item.accessibilityInformation ??= { label: spoken.filter(Boolean).join(', ') };
  return item;
}

function plain(node: Node, known: Known): vscode.TreeItem {
  const open = vscode.TreeItemCollapsibleState.Collapsed;
  switch (node.kind) {
    case 'function':
      return functionItem(node.name, known, open);
    case 'fact':
      return row(node.fact.name, node.fact.value, node.fact.tooltip, node.fact.icon);
    case 'program': {
      const program = known.programs.get(node.program);
      if (!program) return new vscode.TreeItem(`#${node.program}`, open);
      const icon = program.backward ? 'arrow-left' : 'arrow-right';
      const item = row(model.programLabel(program), model.programDescription(program), model.programTooltip(program), icon, open);
      return Object.assign(item, { contextValue: 'program' });
    }
    case 'area':
      return Object.assign(
        row(model.areaLabel(node.area), model.areaDescription(node.area), model.areaTooltip(node.area), 'layers', open),
        { contextValue: 'area' },
      );
    case 'rest':
      return row(
        l10n.t('no work'),
        l10n.t`${node.count} · views, and what is merged into another instruction`,
        l10n.t('Views are strides, not work; some instructions are merged into the one that reads them.'),
        'circle-outline',
        open,
      );
    case 'range':
      return row(`${node.from} … ${node.to - 1}`, '', l10n.t`instructions ${node.from} to ${node.to - 1}`, 'list-ordered', open);
    case 'instruction':
      return instructionItem(node);
  }
}

function functionItem(name: string, known: Known, state: vscode.TreeItemCollapsibleState): vscode.TreeItem {
  const advice = known.advice[name];
  const description = model.functionFacts(known.functions.get(name) ?? [], advice);
  const item = row(model.shortName(name), description, undefined, 'symbol-function', state);
  item.tooltip = adviceTooltip(name, advice);
  item.contextValue = 'function';
  return item;
}

function row(
  label: string,
  description: string,
  tooltip?: string,
  icon?: string,
  state = vscode.TreeItemCollapsibleState.None,
): vscode.TreeItem {
  const item = new vscode.TreeItem(label, state);
  item.description = description;
  if (tooltip) item.tooltip = tooltip;
  if (icon) item.iconPath = new vscode.ThemeIcon(icon);
  return item;
}

function instructionItem(node: InstructionNode): vscode.TreeItem {
  const { instruction: i } = node;
  const item = row(model.splitText(i.text).call, model.instructionDescription(i), model.instructionTooltip(i));
  item.iconPath = i.breakpoint
    ? new vscode.ThemeIcon('debug-breakpoint', new vscode.ThemeColor('debugIcon.breakpointForeground'))
    : new vscode.ThemeIcon('symbol-operator');
  item.contextValue = `instruction${i.breakpoint ? '.stop' : ''}${i.file ? '.place' : ''}`;
  item.accessibilityInformation = {
    label: [
      model.splitText(i.text).call,
      model.instructionDescription(i).replaceAll(' · ', ', '),
      i.breakpoint ? l10n.t('stops here') : '',
    ]
      .filter(Boolean)
      .join(', '),
  };
  if (i.file) item.command = { command: 'dvm.program.goto', title: l10n.t('Go to Its Line'), arguments: [node, true] };
  return item;
}

function adviceTooltip(name: string, advice: Advice | undefined): vscode.MarkdownString {
  const text = new vscode.MarkdownString().appendMarkdown(`**${escape(name)}**`);
  if (!advice) return text;
  text
    .appendMarkdown(`: ${escape(model.verdictOf(advice))}\n\n`)
    .appendText(advice.why)
    .appendMarkdown('\n\n')
    .appendText(l10n.t`What to do: ${advice.do}`);
  for (const note of advice.notes) text.appendMarkdown('\n\n').appendText(note);
  const rows = model.functionRows(advice).slice(1);
  text.appendMarkdown(`\n\n| | |\n|:--|:--|\n${rows.map((r) => `| ${escape(r.name)} | ${escape(r.value)} |`).join('\n')}\n`);
  return text;
}

const escape = (s: string): string => s.replace(/[\\`*_{}[\]()#+\-.!|<>]/g, '\\$&');
