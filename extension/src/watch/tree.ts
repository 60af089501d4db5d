// The Tensor Watch view: one row a tensor, its facts below it.
import path from 'node:path';
import * as l10n from '@vscode/l10n';
import * as vscode from 'vscode';
import { placeholderReason } from '../protocol';
import { count, full, num, sparkline, typeText } from '../text';
import type { WatchModel } from './model';
import { rowText, spokenText, type Definition, type Health, type Series } from './series';

export type Node = WatchNode | FactNode;
export interface WatchNode {
  kind: 'watch';
  definition: Definition;
}
export interface FactNode {
  kind: 'fact';
  key: string;
  name: string;
  value: string;
  exact: string;
  bad?: boolean;
}

/** The sign of a state: a shape as well as a colour. */
const ICONS: Record<Health, vscode.ThemeIcon> = {
  waiting: new vscode.ThemeIcon('circle-outline'),
  finite: new vscode.ThemeIcon('pulse'),
  notFinite: new vscode.ThemeIcon('circle-filled', new vscode.ThemeColor('dvm.notFinite')),
  placeholder: new vscode.ThemeIcon('warning', new vscode.ThemeColor('dvm.placeholder')),
  failed: new vscode.ThemeIcon('error', new vscode.ThemeColor('dvm.notFinite')),
};

export class WatchTree implements vscode.TreeDataProvider<Node>, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<Node[] | undefined>();
  readonly onDidChangeTreeData = this.changed.event;
  private readonly subscription: vscode.Disposable;
  private rows = new Map<string, WatchNode>();
  /** What the rows said last, by key. */
  private readonly said = new Map<string, string>();

  constructor(private readonly model: WatchModel) {
    this.subscription = model.onChanged(() => this.refresh());
  }

  /** New values refresh the rows one by one: while a whole tree is refreshed, a click on a row of it reaches no row. */
  private refresh(): void {
    const all = this.model.all();
    const same = all.length === this.rows.size && all.every(({ key }) => this.rows.has(key));
    if (same) for (const definition of all) Object.assign(this.rows.get(definition.key)!, { definition });
    if (!same) {
      this.said.clear();
      return this.changed.fire(undefined);
    }
    const changed = [...this.rows.values()].filter(({ definition }) => this.saysOtherThan(definition));
    if (changed.length) this.changed.fire(changed);
  }

  private saysOtherThan({ key, expression, everyN, path: file, line }: Definition): boolean {
    const series = this.model.seriesOf(key);
    const now = [expression, everyN, file, line, series?.health(), series?.samples, rowText(series)].join('\n');
    const before = this.said.get(key);
    this.said.set(key, now);
    return before !== now;
  }

  getTreeItem(node: Node): vscode.TreeItem {
    return node.kind === 'watch' ? this.watchItem(node.definition) : factItem(node);
  }

  /** The tooltip is made for the row under the mouse: all rows change several times a second. */
  resolveTreeItem(item: vscode.TreeItem, node: Node): vscode.TreeItem {
    if (node.kind === 'watch') item.tooltip = tooltipOf(node.definition, this.model.seriesOf(node.definition.key));
    return item;
  }

  getChildren(node?: Node): Node[] {
    if (!node) {
      const rows = this.model.all().map((definition): WatchNode => {
        const known = this.rows.get(definition.key);
        return known ? Object.assign(known, { definition }) : { kind: 'watch', definition };
      });
      this.rows = new Map(rows.map((row) => [row.definition.key, row]));
      return rows;
    }
    return node.kind === 'watch' ? factsOf(node.definition, this.model.seriesOf(node.definition.key)) : [];
  }

  private watchItem(definition: Definition): vscode.TreeItem {
    const series = this.model.seriesOf(definition.key);
    const item = new vscode.TreeItem(definition.expression, vscode.TreeItemCollapsibleState.Collapsed);
    item.id = definition.key;
    item.description = rowText(series);
    item.iconPath = ICONS[series?.health() ?? 'waiting'];
    item.contextValue = definition.path ? 'watch.place' : 'watch';
    item.accessibilityInformation = { label: spokenText(definition, series) };
    return item;
  }

  dispose(): void {
    this.subscription.dispose();
    this.changed.dispose();
  }
}

function factItem(fact: FactNode): vscode.TreeItem {
  const item = new vscode.TreeItem(fact.name);
  item.id = `${fact.key}/${fact.name}`;
  item.description = fact.value;
  item.tooltip = fact.exact;
  item.contextValue = 'fact';
  if (fact.bad) item.iconPath = ICONS.notFinite;
  return item;
}

/** Always the same children in the same order, so nothing jumps while values change. */
function factsOf(definition: Definition, series: Series | undefined): FactNode[] {
  const facts: FactNode[] = [];
  const add = (name: string, value: string, exact = value, bad = false): void => {
    facts.push({ kind: 'fact', key: definition.key, name, value, exact, bad });
  };
  const last = series?.last;
  if (last) add(l10n.t('type'), typeText(last.dtype, last.shape), `${last.dtype} [${last.shape.join(', ')}]`);
  const missing = series?.missing || (last ? placeholderReason(last) : '');
  if (missing) add(l10n.t('values'), missing, missing, true);
  const stats = series?.lastStats;
  if (stats) {
    for (const name of ['min', 'max', 'mean', 'std'] as const) add(name, exactish(stats[name]), full(stats[name]));
    const share = (n: number | undefined): string => (stats.count ? l10n.t`${count(n ?? 0)} of ${count(stats.count)}` : '0');
    add(l10n.t('zeros'), share(stats.zero));
    for (const [name, n] of [
      ['NaN', stats.nan],
      ['+Inf', stats.pos_inf],
      ['-Inf', stats.neg_inf],
    ] as const)
      add(name, share(n), share(n), (n ?? 0) > 0);
  }
  if (series && series.history().length > 1)
    add(l10n.t('history'), sparkline(series.history(), 40), series.history().slice(-40).map(full).join('\n'));
  if (series?.firstBadStep !== undefined) add(l10n.t('first not finite'), l10n.t`step ${count(series.firstBadStep)}`);
  if (definition.path)
    add(l10n.t('made at'), `${path.basename(definition.path)}:${definition.line}`, `${definition.path}:${definition.line}`);
  add(l10n.t('sampled'), definition.everyN === 1 ? l10n.t('every launch') : l10n.t`every ${count(definition.everyN)} launches`);
  return facts;
}

/** Six significant digits: enough to compare two steps by eye. */
const exactish = (x: Parameters<typeof num>[0]): string =>
  Number.isFinite(num(x)) ? String(Number(num(x).toPrecision(6))) : full(x);

function tooltipOf(definition: Definition, series: Series | undefined): vscode.MarkdownString {
  const text = new vscode.MarkdownString();
  text.appendMarkdown(`**${escape(definition.expression)}**\n\n`);
  const last = series?.last;
  if (last) text.appendText(l10n.t`${last.dtype} [${last.shape.join(', ')}], step ${count(last.step)}`).appendMarkdown('\n\n');
  const missing = series?.missing || (last ? placeholderReason(last) : '');
  if (missing) text.appendText(missing).appendMarkdown('\n\n');
  const stats = series?.lastStats;
  if (stats) {
    const rows = (['min', 'max', 'mean', 'std'] as const).map((n) => `| ${n} | ${full(stats[n])} |`);
    text.appendMarkdown(`| | |\n|:--|--:|\n${rows.join('\n')}\n\n`);
  }
  if (series?.error || series?.message) text.appendText(series.error ?? series.message ?? '').appendMarkdown('\n\n');
  if (series?.placeholders) text.appendText(l10n.t`${series.placeholders} of ${series.samples} samples without values`);
  return text;
}

const escape = (s: string): string => s.replace(/[\\`*_{}[\]()#+\-.!|<>]/g, '\\$&');
