// The tensor watches: kept in the workspace, told to every session, fed by its dvm/snapshot events.
import { randomUUID } from 'node:crypto';
import * as vscode from 'vscode';
import { log, messageOf } from '../log';
import type { Notice, Snapshot, WatchAnswer } from '../protocol';
import type { Sessions } from '../sessions';
import { Series, type Definition } from './series';

const STATE = 'dvm.watches';
const WHAT = ['stats', 'values'] as const;
type What = (typeof WHAT)[number];

export class WatchModel implements vscode.Disposable {
  private definitions: Definition[];
  /** Series by session id, then by definition key. The last ended session's stay, so its history can still be read. */
  private readonly series = new Map<string, Map<string, Series>>();
  /** The adapter's watches: session id → watch id → what it is. */
  private readonly ids = new Map<string, Map<number, { key: string; what: What }>>();
  private lastSession: string | undefined;
  private timer: NodeJS.Timeout | undefined;
  private readonly disposables: vscode.Disposable[] = [];
  private readonly changed = new vscode.EventEmitter<void>();
  private readonly snapshots = new vscode.EventEmitter<{ key: string; snapshot: Snapshot }>();
  /** Definitions whose values are wanted beside their statistics. */
  private readonly values = new Set<string>();
  /** Something to show has changed; at most ten times a second. */
  readonly onChanged = this.changed.event;
  /** Every sample of the session in view, as it comes. */
  readonly onSnapshot = this.snapshots.event;

  constructor(
    private readonly memento: vscode.Memento,
    private readonly sessions: Sessions,
  ) {
    this.definitions = memento.get<Definition[]>(STATE, []);
    this.disposables.push(
      this.changed,
      this.snapshots,
      sessions.onReady((session) => this.begin(session)),
      sessions.onEnded((session) => {
        this.ids.delete(session.id);
        this.changeSoon();
      }),
      sessions.onEvent((e) => {
        if (e.name === 'dvm/snapshot') this.receive(e.session.id, e.body as Snapshot);
        if (e.name === 'dvm/notice') this.refused(e.session.id, e.body as Notice);
      }),
      vscode.debug.onDidChangeActiveDebugSession(() => this.changeSoon()),
    );
  }

  all(): readonly Definition[] {
    return this.definitions;
  }

  find(key: string): Definition | undefined {
    return this.definitions.find((d) => d.key === key);
  }

  /** Samples of the session in view; after it ended, of the last one. */
  seriesOf(key: string): Series | undefined {
    const session = this.sessions.current()?.id ?? this.lastSession;
    return session === undefined ? undefined : this.series.get(session)?.get(key);
  }

  /** The adapter's id of a watch of values in a session, for dvm/tensor. */
  watchId(key: string, session: vscode.DebugSession): number | undefined {
    for (const [id, watch] of this.ids.get(session.id) ?? []) if (watch.key === key && watch.what === 'values') return id;
    return undefined;
  }

  async add(what: Omit<Definition, 'key' | 'everyN'> & { everyN?: number }): Promise<void> {
    const twin = this.definitions.find((d) => d.expression === what.expression && d.path === what.path && d.line === what.line);
    if (twin) return;
    const everyN = what.everyN ?? vscode.workspace.getConfiguration('dvm').get<number>('watch.everyN', 1);
    const definition: Definition = { ...what, everyN, key: randomUUID() };
    this.definitions = [...this.definitions, definition];
    this.save();
    await Promise.all(this.sessions.all().map((s) => (this.sessions.isReady(s) ? this.request(s, definition) : undefined)));
  }

  async remove(keys: readonly string[]): Promise<void> {
    this.definitions = this.definitions.filter((d) => !keys.includes(d.key));
    this.save();
    await Promise.all(keys.map((key) => this.unwatch(key)));
    for (const perSession of this.series.values()) keys.forEach((key) => perSession.delete(key));
  }

  async setRate(keys: readonly string[], everyN: number): Promise<void> {
    this.definitions = this.definitions.map((d) => (keys.includes(d.key) ? { ...d, everyN } : d));
    this.save();
    for (const key of keys) await this.renew(key);
  }

  /** Asks for values beside statistics, or for statistics alone again: what an open tensor page needs. */
  async setValues(key: string, wanted: boolean): Promise<void> {
    if (wanted) this.values.add(key);
    else this.values.delete(key);
    await this.renew(key);
  }

  /** Tells running sessions of a watch as it is now, in place of what it was. */
  private async renew(key: string): Promise<void> {
    const definition = this.find(key);
    if (!definition) return;
    await this.unwatch(key);
    for (const session of this.sessions.all()) if (this.sessions.isReady(session)) await this.request(session, definition);
  }

  private begin(session: vscode.DebugSession): void {
    // Keep the running sessions' samples and this one's; older ones are no longer on screen anywhere.
    const live = new Set(this.sessions.all().map((s) => s.id));
    for (const id of this.series.keys()) if (!live.has(id)) this.series.delete(id);
    this.lastSession = session.id;
    for (const definition of this.definitions) void this.request(session, definition);
  }

  private async request(session: vscode.DebugSession, definition: Definition): Promise<void> {
    const series = this.seriesIn(session.id, definition.key);
    const { expression, path, line, everyN } = definition;
    const place = path === undefined ? {} : { path, line };
    try {
      for (const what of this.values.has(definition.key) ? WHAT : WHAT.slice(0, 1)) {
        const args = { expression, ...place, what, everyN, name: expression };
        const answer = await this.sessions.request<WatchAnswer>('dvm/watch', args, session);
        series.error = undefined;
        series.message = answer.message;
        const ids = this.ids.get(session.id) ?? new Map<number, { key: string; what: What }>();
        this.ids.set(session.id, ids.set(answer.watchId, { key: definition.key, what }));
      }
    } catch (error) {
      series.error = messageOf(error);
      log.warn(`watch ${expression}: ${series.error}`);
    }
    this.changeSoon();
  }

  private async unwatch(key: string): Promise<void> {
    for (const session of this.sessions.all()) {
      const ids = this.ids.get(session.id);
      for (const [watchId, watch] of ids ?? []) {
        if (watch.key !== key) continue;
        ids?.delete(watchId);
        try {
          await this.sessions.request('dvm/unwatch', { watchId }, session);
        } catch (error) {
          log.warn(`unwatch: ${messageOf(error)}`);
        }
      }
    }
  }

  private receive(session: string, snapshot: Snapshot): void {
    const watch = snapshot.watchId === null ? undefined : this.ids.get(session)?.get(snapshot.watchId);
    if (!watch) return;
    if (watch.what === 'stats') this.seriesIn(session, watch.key).add(snapshot);
    if (session === this.sessions.current()?.id) this.snapshots.fire({ key: watch.key, snapshot });
    this.changeSoon();
  }

  /** A watch set before the program had loaded its tensor engine is refused later, by a notice. */
  private refused(session: string, notice: Notice): void {
    const key = notice.watchId === undefined ? undefined : this.ids.get(session)?.get(notice.watchId)?.key;
    if (key === undefined) return;
    this.seriesIn(session, key).error = notice.text;
    this.changeSoon();
  }

  private seriesIn(session: string, key: string): Series {
    const perSession = this.series.get(session) ?? new Map<string, Series>();
    this.series.set(session, perSession);
    const limit = vscode.workspace.getConfiguration('dvm').get<number>('watch.historyLength', 240);
    const series = perSession.get(key) ?? new Series(limit);
    perSession.set(key, series);
    return series;
  }

  private save(): void {
    void this.memento.update(STATE, this.definitions);
    this.changeSoon();
  }

  /** Snapshots may come at hundreds a second; a tree redrawn at ten is as current as an eye can see. */
  private changeSoon(): void {
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.changed.fire();
    }, 100);
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.disposables.forEach((d) => d.dispose());
  }
}
