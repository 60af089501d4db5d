// One tensor's panel: finds the tensor where it is now, asks for the part its page shows, and does what only an editor can.
import * as l10n from '@vscode/l10n';
import * as vscode from 'vscode';
import { guarded, messageOf } from '../log';
import type { Compared, Kept, Stats, TensorView } from '../protocol';
import type { Sessions } from '../sessions';
import { goTo } from '../watch/commands';
import type { WatchModel } from '../watch/model';
import { numpyLiteral, tabSeparated } from './literal';
import { inBytes } from './planes';
import { Partners } from './partners';
import type { FromTensorPage, PageState, ToTensorPage } from './tensor_messages';
import { mediaOf } from './page';
import { tensorPage } from './tensor_page';

/** What a panel shows: an expression at the stop, a memory reference, or a watch, which is also shown while the program runs. */
export interface Target {
  name: string;
  expression?: string;
  memoryReference?: string;
  watch?: string;
}

/** How a request names a tensor. */
export type Named = Record<string, string | number>;

type Asked = FromTensorPage & { type: 'view' };

const HISTORY_MS = 500;
/** Answers on their way to the page: one is drawn while the next one is made. */
const MOST_FLYING = 2;

export class TensorPanel implements vscode.Disposable {
  private readonly panel: vscode.WebviewPanel;
  private readonly partners: Partners;
  private readonly disposed = new vscode.EventEmitter<void>();
  private closed = false;
  readonly onDisposed = this.disposed.event;
  target: Target;
  /** The agent's reference of an expression, for as long as the stop lasts. */
  private ref: number | undefined;
  /** The page's questions for something newer, oldest first; whether there is something newer already. */
  private waiting: Asked[] = [];
  private fresh = false;
  private readonly flying = new Set<Asked>();
  private posted = 0;
  private timer: NodeJS.Timeout | undefined;

  constructor(
    target: Target,
    extension: vscode.Uri,
    private readonly sessions: Sessions,
    private readonly model: WatchModel,
  ) {
    this.target = { name: target.name };
    this.panel = vscode.window.createWebviewPanel('dvm.tensor', l10n.t`Tensor ${target.name}`, vscode.ViewColumn.Beside, {
      enableScripts: true,
      localResourceRoots: [mediaOf(extension)],
    });
    this.partners = new Partners(sessions, model);
    this.point(target);
    this.panel.onDidDispose(() => {
      this.closed = true;
      clearTimeout(this.timer);
      this.partners.dispose();
      if (this.target.watch !== undefined) void this.model.setValues(this.target.watch, false);
      this.disposed.fire();
      this.disposed.dispose();
    });
    this.panel.onDidChangeViewState(() => {
      this.flying.clear(); // what was sent to a page that is hidden comes once it is shown
      this.runStateChanged();
    });
    this.panel.webview.onDidReceiveMessage((message: FromTensorPage) => this.answer(message));
    this.panel.webview.html = tensorPage(this.panel.webview, extension, target.name);
  }

  /** Shows that tensor from now on. Copying values costs more than statistics: only while someone looks. */
  point(target: Target): void {
    const before = this.target.watch;
    this.target = { ...target, ...(target.watch === undefined && before !== undefined ? { watch: before } : {}) };
    if (this.target.watch !== before) {
      if (before !== undefined) void this.model.setValues(before, false);
      if (this.target.watch !== undefined) void this.model.setValues(this.target.watch, true);
    }
    this.runStateChanged();
  }

  reveal(): void {
    this.panel.reveal();
  }

  /** There is something newer to show. */
  stale(): void {
    if (!this.visible) return;
    const next = this.flying.size < MOST_FLYING ? this.waiting.shift() : undefined;
    this.fresh = next === undefined;
    if (next) void this.fly(next);
  }

  private async fly(next: Asked): Promise<void> {
    this.flying.add(next);
    await this.show(next);
    if (this.flying.delete(next) && this.fresh) this.stale();
  }

  runStateChanged(): void {
    this.ref = undefined;
    this.postState();
    this.stale();
  }

  private async answer(message: FromTensorPage): Promise<void> {
    switch (message.type) {
      case 'ready':
        return this.postState();
      case 'view':
        if (message.texts) return this.show(message);
        if (message.newer) {
          for (let i = 0; i < (message.times ?? 1); i++) this.waiting.push({ ...message, tag: message.tag + i });
          return this.fresh ? this.stale() : undefined;
        }
        this.waiting = [];
        this.fresh = false;
        return this.show(message);
      case 'stats':
      case 'compare':
        return this.show(message);
      case 'copy':
        return void (await guarded('copy', () => this.copy(message)));
      case 'export':
        return void (await guarded('export', () => this.export(message.snapshot)));
      case 'goto':
        return void (await guarded(l10n.t('go to the line'), () => goTo(message.path, message.line)));
      case 'watch':
        return void (await guarded('watch', () => this.watch()));
      case 'partner': {
        const partner = await this.partners.askExpression();
        if (partner) void this.post({ type: 'chosen', partner });
      }
    }
  }

  private async show(message: Asked | (FromTensorPage & { type: 'stats' | 'compare' })): Promise<void> {
    try {
      await this.post(await this[message.type](message as never));
    } catch (error) {
      await this.post({ type: 'error', tag: message.tag, text: messageOf(error) });
    }
  }

  // ---- the tensor ----------------------------------------------------------------------------------------------------------------
  private session(): vscode.DebugSession {
    const session = this.sessions.current();
    if (!session) throw new Error(l10n.t('The session has ended.'));
    return session;
  }

  /** Asks about the tensor as it is now: at a stop by its expression, else (and where that means nothing here) what its watch has kept. */
  private async request<T extends { ref?: number }>(command: string, more: object, snapshot: number | undefined): Promise<T> {
    const session = this.session();
    const { expression, memoryReference, watch } = this.target;
    const watchId = watch === undefined ? undefined : this.model.watchId(watch, session);
    const kept = (): Promise<T> =>
      this.sessions.request<T>(command, { watchId, ...(snapshot === undefined ? {} : { snapshot }), ...more }, session);
    if (snapshot !== undefined && watchId === undefined)
      throw new Error(l10n.t('Its snapshots went with the session or the watch.'));
    const here = memoryReference ? { memoryReference } : expression ? { expression } : undefined;
    const stopped = this.sessions.isStopped(session);
    if (snapshot === undefined && stopped && here) {
      const named = this.ref === undefined ? here : { ref: this.ref };
      try {
        const answer = await this.sessions.request<T>(command, { ...named, ...more }, session);
        this.ref = answer.ref ?? this.ref;
        return answer;
      } catch (error) {
        if (watchId === undefined) throw error;
      }
    }
    if (watchId !== undefined) return kept();
    throw new Error(
      stopped
        ? l10n.t('The watch has no values yet.')
        : l10n.t('The program is running: values are shown at a stop, or live once it is watched.'),
    );
  }

  private async view({ tag, window, snapshot, texts, shades }: Asked): Promise<ToTensorPage> {
    const more = { ...window, ...(texts ? { texts } : {}), ...(shades && this.running ? { shades } : {}) };
    const view = await this.request<TensorView>('dvm/view', more, snapshot);
    if (view.kept === undefined && !texts) view.kept = await this.kept();
    const series = this.target.watch === undefined ? undefined : this.model.seriesOf(this.target.watch);
    // At a stop the tensor may have another value than at the end of the step before.
    const stats = view.snapshot === undefined || view.step === undefined ? undefined : series?.at(view.step);
    const shown = view.plane ? { ...view, plane: inBytes(view.plane) } : view;
    return { type: 'view', tag, view: shown, ...(stats ? { stats } : {}) };
  }

  /** What its watch keeps, where the tensor itself was found at the stop. */
  private async kept(): Promise<Kept[]> {
    const session = this.session();
    const watchId = this.target.watch === undefined ? undefined : this.model.watchId(this.target.watch, session);
    if (watchId === undefined) return [];
    try {
      return (await this.sessions.request<TensorView>('dvm/view', { watchId, most: [1, 1] }, session)).kept ?? [];
    } catch {
      return []; // nothing was kept so far
    }
  }

  private async stats({ tag, snapshot }: FromTensorPage & { type: 'stats' }): Promise<ToTensorPage> {
    const { stats } = await this.request<{ stats: Stats; ref?: number }>('dvm/viewStats', {}, snapshot);
    return { type: 'stats', tag, stats };
  }

  private async compare(message: FromTensorPage & { type: 'compare' }): Promise<ToTensorPage> {
    const { tag, window, snapshot, follows, partner, tolerance, relative } = message;
    const session = this.session();
    const view = await this.request<TensorView>('dvm/view', { most: [1, 1] }, snapshot);
    const kept = follows && view.ref === undefined ? (view.kept ?? []) : [];
    const found = await this.partners.resolve(partner, session, this.target, { step: view.step, kept }, (n) =>
      this.ownSnapshot(session, n),
    );
    const { instead, b, other, otherStep } = found;
    const a: Named = view.ref !== undefined ? { ref: view.ref } : this.ownSnapshot(session, instead?.snapshot ?? view.snapshot);
    const answer = await this.sessions.request<Compared>('dvm/compare', { a, b, ...window, tolerance, relative }, session);
    const sides = { step: instead?.step ?? view.step, other, otherStep };
    return { type: 'compared', tag, answer: { ...answer, plane: inBytes(answer.plane) }, sides };
  }

  private ownSnapshot(session: vscode.DebugSession, snapshot: number | undefined): Named {
    const watchId = this.target.watch === undefined ? undefined : this.model.watchId(this.target.watch, session);
    if (watchId === undefined || snapshot === undefined)
      throw new Error(l10n.t('There is no earlier step of it: watch it first.'));
    return { watchId, snapshot };
  }

  // ---- what an editor can do -----------------------------------------------------------------------------------------------------
  private async copy({ as, window, snapshot }: FromTensorPage & { type: 'copy' }): Promise<void> {
    const view = await this.request<TensorView>('dvm/view', { ...window, texts: true }, snapshot);
    const [texts, plane] = [view.texts ?? [], view.plane];
    const width = plane ? plane.columns[1] - plane.columns[0] : 0;
    const made = as === 'numpy' ? numpyLiteral(texts, width, view.shape.length, view.dtype) : tabSeparated(texts, width);
    await vscode.env.clipboard.writeText(made);
    const size = texts.length === 1 ? l10n.t('1 element') : l10n.t`${texts.length.toLocaleString('en-US')} elements`;
    const format = as === 'numpy' ? 'NumPy' : 'TSV';
    vscode.window.setStatusBarMessage(l10n.t`Copied ${size} of ${this.target.name} as ${format}`, 4000);
  }

  private async export(snapshot: number | undefined): Promise<void> {
    const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
    const name = `${this.target.name.replace(/[^\w.-]+/g, '_')}.npy`;
    const to = await vscode.window.showSaveDialog({
      title: l10n.t`Export ${this.target.name} as .npy`,
      filters: { NumPy: ['npy'] },
      ...(folder ? { defaultUri: vscode.Uri.joinPath(folder, name) } : {}),
    });
    if (to) await this.request('dvm/export', { format: 'npy', path: to.fsPath }, snapshot);
  }

  private async watch(): Promise<void> {
    const { name, expression = name } = this.target;
    const key = await vscode.commands.executeCommand<string | undefined>('dvm.watch.addVariable', {
      variable: { name, evaluateName: expression },
    });
    if (key !== undefined) this.point({ ...this.target, watch: key });
  }

  // ---- to the page ---------------------------------------------------------------------------------------------------------------
  /** History and partners; twice a second is as fast as they can be read. */
  postState(): void {
    if (!this.visible || this.timer) return;
    this.timer = setTimeout(
      () => {
        this.timer = undefined;
        this.posted = Date.now();
        if (this.visible) void this.post({ type: 'state', state: this.state() });
      },
      Math.max(0, this.posted + HISTORY_MS - Date.now()),
    );
  }

  private state(): PageState {
    const { watch } = this.target;
    const session = this.sessions.current();
    const series = watch === undefined ? undefined : this.model.seriesOf(watch);
    const samples = series?.all() ?? [];
    return {
      watched: watch !== undefined && this.model.find(watch) !== undefined,
      running: this.running,
      history: {
        steps: samples.map((s) => s.step),
        stats: samples.map(({ stats }) => ({ ...stats, histogram: [] })),
      },
      partners: session ? this.partners.all(session, this.target) : [],
      missing: series?.error ?? series?.missing ?? '',
    };
  }

  private get running(): boolean {
    const session = this.sessions.current();
    return session !== undefined && !this.sessions.isStopped(session);
  }

  private get visible(): boolean {
    return !this.closed && this.panel.visible;
  }

  /** An answer may come after the page was closed. */
  private async post(message: ToTensorPage): Promise<void> {
    if (!this.closed) await this.panel.webview.postMessage(message);
  }

  dispose(): void {
    this.panel.dispose();
  }
}
