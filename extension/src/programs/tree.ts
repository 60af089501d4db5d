// The Programs view: captured functions, their programs, areas and instructions. What is not opened is not asked for; hidden, nothing is.
import * as l10n from '@vscode/l10n';
import * as vscode from 'vscode';
import { log, messageOf } from '../log';
import type { Advice, AreaInfo, InstructionInfo, ProgramInfo, ProgramsAnswer } from '../protocol';
import type { Sessions } from '../sessions';
import * as model from './model';
import { itemOf, type InProgram, type InstructionNode, type Node } from './rows';

export type { InstructionNode, Node } from './rows';

export const VIEW = 'dvm.programsView';

const LEAST_MS = 500;
const MOST_MS = 3000;
const SHARE = 10; // between two refreshes at least so many times what the last one took, up to MOST_MS

export class ProgramTree implements vscode.TreeDataProvider<Node>, vscode.Disposable {
  private programs = new Map<number, ProgramInfo>();
  private functions = new Map<string, ProgramInfo[]>();
  private advice: Record<string, Advice> = {};
  /** By node id: VS Code tells rows apart by object. */
  private nodes = new Map<string, Node>();
  private readonly parents = new Map<string, Node>();
  /** Instructions asked for, by node id; as long as the program's shapes stay. */
  private readonly rows = new Map<string, { shapes: string; rows: Promise<InstructionInfo[]> }>();
  private view: vscode.TreeView<Node> | undefined;
  private timer: NodeJS.Timeout | undefined;
  private asked = -Infinity;
  private asking = false;
  private again = false;
  /** A request to a session that ends is never answered: what belongs to an earlier one does not count. */
  private generation = 0;
  private pause = LEAST_MS;
  private shown = '';
  /** Requests sent for the list, for tests: a hidden view sends none. */
  refreshes = 0;
  private readonly changed = new vscode.EventEmitter<Node[] | undefined>();
  readonly onDidChangeTreeData = this.changed.event;
  private readonly disposables: vscode.Disposable[];

  constructor(private readonly sessions: Sessions) {
    this.disposables = [
      this.changed,
      sessions.onReady(() => this.soon()),
      sessions.onRunState((session) => {
        if (!sessions.isStopped(session)) return;
        this.rows.clear(); // shapes and numbers are those of the launch it stands in
        this.soon();
      }),
      sessions.onEvent((e) => {
        if (e.name === 'dvm/restarted') this.reset();
        if (e.name === 'dvm/step' || e.name === 'dvm/program' || e.name === 'dvm/reload') this.soon();
      }),
      sessions.onEnded(() => {
        if (!sessions.all().length) this.reset();
      }),
      vscode.debug.onDidChangeActiveDebugSession((session) => {
        if (session?.type === 'dvm') {
          this.reset();
          this.soon();
        }
      }),
    ];
  }

  /** The view shows this tree; from now on its visibility decides whether anything is asked for. */
  attach(view: vscode.TreeView<Node>): void {
    this.view = view;
    this.disposables.push(view.onDidChangeVisibility(() => this.soon()));
  }

  private reset(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.generation++;
    this.asking = this.again = false;
    [this.asked, this.pause] = [-Infinity, LEAST_MS];
    this.shown = '';
    [this.programs, this.functions, this.nodes] = [new Map(), new Map(), new Map()];
    this.advice = {};
    this.rows.clear();
    this.parents.clear();
    this.changed.fire(undefined);
  }

  /** A refresh when its time has come, if the view can be seen. */
  soon(): void {
    if (!this.visible || this.timer) return;
    if (this.asking) {
      this.again = true;
      return;
    }
    const wait = Math.max(0, this.asked + this.pause - performance.now());
    this.timer = setTimeout(() => {
      this.timer = undefined;
      if (this.visible) void this.refresh();
    }, wait);
  }

  get visible(): boolean {
    return this.view?.visible ?? false;
  }

  /** Asks for the list now; a change of what there is redraws the tree, other figures their rows. */
  async refresh(): Promise<void> {
    const session = this.sessions.current();
    if (this.asking || !session || !this.sessions.isReady(session)) return;
    const mine = this.generation;
    this.asking = true;
    this.asked = performance.now();
    this.refreshes++;
    try {
      const answer = await this.sessions.request<ProgramsAnswer>('dvm/programs', {}, session);
      if (mine === this.generation) this.take(answer);
    } catch (error) {
      log.debug(`dvm/programs: ${messageOf(error)}`); // no tensor engine in this process yet
    }
    if (mine !== this.generation) return;
    this.pause = Math.min(MOST_MS, Math.max(LEAST_MS, SHARE * (performance.now() - this.asked)));
    this.asking = false;
    if (this.again) {
      this.again = false;
      this.soon();
    }
  }

  private take(answer: ProgramsAnswer): void {
    const before = this.programs;
    this.programs = new Map(answer.programs.map((p) => [p.id, p]));
    this.functions = model.byFunction(answer.programs);
    this.advice = answer.advice ?? {};
    const shown = answer.programs.map((p) => p.id).join();
    if (shown !== this.shown) {
      this.shown = shown;
      this.prune();
      this.changed.fire(undefined);
      return;
    }
    // Programs that did not run since have nothing new to say.
    const ran = answer.programs.filter((p) => before.get(p.id)?.launches !== p.launches);
    const rows = [...new Set(ran.map((p) => p.name))].map((name) => this.nodes.get(`f/${name}`)).filter((n) => n !== undefined);
    if (rows.length) this.changed.fire(rows);
  }

  /** Lets go of what belonged to functions and programs that are no longer there. */
  private prune(): void {
    const there = (id: string): boolean => {
      const program = /^p\/(\d+)(?=\/|$)/.exec(id);
      if (program) return this.programs.has(Number(program[1]));
      return this.functions.has(id.replace(/^f\/|\/fact\d+$/g, ''));
    };
    for (const known of [this.nodes, this.parents, this.rows]) for (const id of known.keys()) if (!there(id)) known.delete(id);
  }

  /** How many rows are known, for tests: those of programs that are gone are not. */
  get size(): number {
    return this.nodes.size;
  }

  /** One object for each id, so that a row stays the row it was. */
  private node<T extends Node>(made: T, parent?: Node): T {
    const known = this.nodes.get(made.id);
    const node = known ? (Object.assign(known, made) as T) : made;
    this.nodes.set(made.id, node);
    if (parent) this.parents.set(made.id, parent);
    return node;
  }

  getParent(node: Node): Node | undefined {
    return this.parents.get(node.id);
  }

  async getChildren(node?: Node): Promise<Node[]> {
    if (!node) return [...this.functions.keys()].map((name) => this.node({ kind: 'function', id: `f/${name}`, name }));
    if (node.kind === 'function') return this.childrenOf(node);
    if (node.kind === 'program') return this.areasOf(node);
    if (node.kind === 'area')
      return [this.whyOf(node), ...(await this.instructionsOf(node, node.area.index, node.area.instructions))];
    if (node.kind === 'rest') return this.instructionsOf(node, -1, node.count);
    if (node.kind === 'range') return this.rangeOf(node);
    return [];
  }

  private childrenOf(parent: Node & { kind: 'function' }): Node[] {
    const rows = model.functionRows(this.advice[parent.name]).map((fact, i): Node => {
      return this.node({ kind: 'fact', id: `${parent.id}/fact${i}`, fact }, parent);
    });
    const programs = (this.functions.get(parent.name) ?? []).map((p): Node => {
      return this.node({ kind: 'program', id: `p/${p.id}`, program: p.id, name: p.name }, parent);
    });
    return [...rows, ...programs];
  }

  private async areasOf(parent: Node & { kind: 'program' }): Promise<Node[]> {
    const { program, name } = parent;
    const answer = await this.ask<{ areas: AreaInfo[]; noWork: number }>({ id: program, level: 'areas' });
    const found = (answer?.areas ?? []).map((area): Node => {
      return this.node({ kind: 'area', id: `p/${program}/a${area.index}`, program, name, area }, parent);
    });
    if (answer?.noWork)
      found.push(this.node({ kind: 'rest', id: `p/${program}/rest`, program, name, count: answer.noWork }, parent));
    return found;
  }

  /** The reason in a row of its own: behind times and counts it would be cut off. */
  private whyOf(parent: Node & { kind: 'area' }): Node {
    const { reason } = parent.area;
    const fact = { icon: 'question', name: l10n.t('ends here because'), value: reason, tooltip: model.areaTooltip(parent.area) };
    return this.node({ kind: 'fact', id: `${parent.id}/why`, fact }, parent);
  }

  private async instructionsOf(parent: Node & InProgram, area: number, total: number): Promise<Node[]> {
    const { program, name, id } = parent;
    const parts = model.ranges(total);
    if (parts.length)
      return parts.map(([from, to]) => this.node({ kind: 'range', id: `${id}/${from}`, program, name, area, from, to }, parent));
    return this.rowsOf(parent, area, 0, total);
  }

  private rangeOf(node: Node & { kind: 'range' }): Promise<Node[]> {
    return this.rowsOf(node, node.area, node.from, node.to - node.from);
  }

  private async rowsOf(parent: Node & InProgram, area: number, offset: number, total: number): Promise<Node[]> {
    const { program, name, id } = parent;
    const shapes = (this.programs.get(program)?.shapes ?? []).join();
    let known = this.rows.get(id);
    if (known?.shapes !== shapes) {
      const args = { id: program, level: 'areas', area, offset, count: total };
      const rows = this.ask<{ instructions: InstructionInfo[] }>(args).then((answer) => answer?.instructions ?? []);
      this.rows.set(id, (known = { shapes, rows }));
    }
    return (await known.rows).map((instruction) =>
      this.node({ kind: 'instruction', id: `p/${program}/i${instruction.index}`, program, name, instruction }, parent),
    );
  }

  private async ask<T>(args: object): Promise<T | undefined> {
    try {
      return await this.sessions.request<T>('dvm/program', args);
    } catch (error) {
      log.warn(`dvm/program: ${messageOf(error)}`);
      return undefined;
    }
  }

  /** After a breakpoint was set or taken away: the rows say so. */
  markStops(stops: readonly { program: number; instruction: number }[]): void {
    const wanted = new Set(stops.map((s) => `p/${s.program}/i${s.instruction}`));
    const changed = [...this.nodes.values()].filter(
      (n): n is InstructionNode => n.kind === 'instruction' && Boolean(n.instruction.breakpoint) !== wanted.has(n.id),
    );
    for (const node of changed) node.instruction.breakpoint = wanted.has(node.id);
    if (changed.length) this.changed.fire(changed);
  }

  getTreeItem(node: Node): vscode.TreeItem {
    return itemOf(node, { programs: this.programs, functions: this.functions, advice: this.advice });
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.disposables.forEach((d) => d.dispose());
  }
}
