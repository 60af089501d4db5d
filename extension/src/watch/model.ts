// The tensor watches: kept in the workspace, told to every session, fed by its dvm/snapshot events.
import { randomUUID } from 'node:crypto';
import * as vscode from 'vscode';
import { log, messageOf } from '../log';
import { placeholderReason, type Notice, type Snapshot, type WatchAnswer } from '../protocol';
import type { Sessions } from '../sessions';
import { Series, type Definition } from './series';

const STATE = 'dvm.watches';
const WHAT = ['stats', 'values'] as const;
type What = (typeof WHAT)[number];
/** Snapshots that stay in the program for each watch whose values are wanted. */
const KEEP = 64;

/** Definitions of whose values there is something newer in a session. */
export interface Newer {
  session: string;
  keys: ReadonlySet<string>;
}

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
  private readonly newer = new vscode.EventEmitter<Newer>();
  /** Definitions whose values are wanted beside their statistics, and how many want them. */
  private readonly values = new Map<string, number>();
  /** Something to show has changed; at most five times a second. */
  readonly onChanged = this.changed.event;
  /** Values were taken. Statistics alone are none. */
  readonly onValues = this.newer.event;

  constructor(
    private readonly memento: vscode.Memento,
    private readonly sessions: Sessions,
  ) {
    this.definitions = memento.get<Definition[]>(STATE, []);
    this.disposables.push(
      this.changed,
      this.newer,
      sessions.onReady((session) => this.begin(session)),
      sessions.onEnded((session) => {
        this.ids.delete(session.id);
        this.forgetPrograms(session.id);
      }),
      sessions.onEvent((e) => {
        if (e.name === 'dvm/snapshots') this.receive(e.session.id, (e.body as { snapshots: Snapshot[] }).snapshots);
        if (e.name === 'dvm/notice') this.refused(e.session.id, e.body as Notice);
        if (e.name === 'dvm/restarted') this.forget(e.session.id);
      }),
      vscode.debug.onDidChangeActiveDebugSession(() => this.changeSoon()),
    );
  }

  /** The session's program begins anew: its adapter has the watches still, and the samples are of another run. */
  private forget(session: string): void {
    this.series.delete(session);
    this.forgetPrograms(session);
  }

  /** Watches of instructions go with the programs they are of. */
  private forgetPrograms(session: string): void {
    this.definitions = this.definitions.filter((d) => d.of?.session !== session);
    this.changeSoon();
  }

  all(): readonly Definition[] {
    return this.definitions;
  }

  find(key: string): Definition | undefined {
    return this.definitions.find((d) => d.key === key);
  }

  /** Samples of a session: the one in view, or after it ended the last one. */
  seriesOf(key: string, of?: string): Series | undefined {
    const session = of ?? this.sessions.current()?.id ?? this.lastSession;
    return session === undefined ? undefined : this.series.get(session)?.get(key);
  }

  /** The adapter's id of a watch of values in a session, for dvm/tensor. */
  watchId(key: string, session: vscode.DebugSession): number | undefined {
    for (const [id, watch] of this.ids.get(session.id) ?? []) if (watch.key === key && watch.what === 'values') return id;
    return undefined;
  }

  /** The key of the new watch, or of the one that is the same. */
  async add(what: Omit<Definition, 'key' | 'everyN'> & { everyN?: number }): Promise<string> {
    const same = (d: Definition): boolean =>
      JSON.stringify(d.of) === JSON.stringify(what.of) && d.path === what.path && d.line === what.line;
    const twin = this.definitions.find((d) => d.expression === what.expression && same(d));
    if (twin) return twin.key;
    const everyN = what.everyN ?? vscode.workspace.getConfiguration('dvm').get<number>('watch.everyN', 1);
    const definition: Definition = { ...what, everyN, key: randomUUID() };
    this.definitions = [...this.definitions, definition];
    this.save();
    await Promise.all(this.sessions.all().map((s) => (this.sessions.isReady(s) ? this.request(s, definition) : undefined)));
    return definition.key;
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

  /** Asks for values beside statistics, or for statistics alone again once nobody wants them: what an open tensor page needs. */
  async setValues(key: string, wanted: boolean): Promise<void> {
    const users = (this.values.get(key) ?? 0) + (wanted ? 1 : -1);
    if (users > 0) this.values.set(key, users);
    else this.values.delete(key);
    if (users !== (wanted ? 1 : 0)) return;
    for (const session of this.sessions.all()) {
      const definition = this.find(key);
      if (wanted && definition && this.sessions.isReady(session)) await this.request(session, definition, ['values']);
      if (!wanted) {
        await this.unwatch(key, 'values', session);
        this.seriesIn(session.id, key).missing = '';
      }
    }
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
    this.ids.delete(session.id); // one that was restarted has an adapter that knows no watch yet
    this.definitions = this.definitions.filter((d) => !d.of || live.has(d.of.session));
    for (const definition of this.definitions) void this.request(session, definition);
  }

  private async request(
    session: vscode.DebugSession,
    definition: Definition,
    whats: readonly What[] = this.values.has(definition.key) ? WHAT : ['stats'],
  ): Promise<void> {
    const series = this.seriesIn(session.id, definition.key);
    const { expression, path, line, everyN, of } = definition;
    if (of && of.session !== session.id) return;
    const place = path === undefined ? {} : { path, line };
    const which = of ? { program: of.program, instruction: of.instruction } : { expression, ...place };
    try {
      for (const what of whats) {
        const args = { ...which, what, everyN, name: expression, together: true, ...(what === 'values' ? { keep: KEEP } : {}) };
        const { watchId, message } = await this.sessions.request<WatchAnswer>('dvm/watch', args, session);
        if (!this.wants(session, definition, what)) {
          await this.sessions.request('dvm/unwatch', { watchId }, session);
          continue;
        }
        series.error = undefined;
        series.message = message;
        const ids = this.ids.get(session.id) ?? new Map<number, { key: string; what: What }>();
        this.ids.set(session.id, ids.set(watchId, { key: definition.key, what }));
      }
    } catch (error) {
      series.error = messageOf(error);
      log.warn(`watch ${expression}: ${series.error}`);
    }
    this.changeSoon();
  }

  /** Whether an answer still has a use: meanwhile its definition may be gone or another, its page closed, or closed and opened again. */
  private wants(session: vscode.DebugSession, definition: Definition, what: What): boolean {
    const { key } = definition;
    if (this.find(key) !== definition || (what === 'values' && !this.values.has(key))) return false;
    return ![...(this.ids.get(session.id)?.values() ?? [])].some((watch) => watch.key === key && watch.what === what);
  }

  private async unwatch(key: string, what?: What, only?: vscode.DebugSession): Promise<void> {
    for (const session of only ? [only] : this.sessions.all()) {
      const ids = this.ids.get(session.id);
      for (const [watchId, watch] of ids ?? []) {
        if (watch.key !== key || (what && watch.what !== what)) continue;
        ids?.delete(watchId);
        try {
          await this.sessions.request('dvm/unwatch', { watchId }, session);
        } catch (error) {
          log.warn(`unwatch: ${messageOf(error)}`);
        }
      }
    }
  }

  private receive(session: string, snapshots: readonly Snapshot[]): void {
    const keys = new Set<string>();
    for (const snapshot of snapshots) {
      const watch = snapshot.watchId === null ? undefined : this.ids.get(session)?.get(snapshot.watchId);
      if (!watch) continue;
      const series = this.seriesIn(session, watch.key);
      if (watch.what === 'stats') series.add(snapshot);
      else series.missing = placeholderReason(snapshot);
      if (snapshot.snapshot !== undefined) keys.add(watch.key);
    }
    if (keys.size) this.newer.fire({ session, keys });
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
    // The number of a program is another one in the next session.
    void this.memento.update(
      STATE,
      this.definitions.filter((d) => !d.of),
    );
    this.changeSoon();
  }

  /** Snapshots may come at hundreds a second; a tree redrawn at five is as current as an eye can read. */
  private changeSoon(): void {
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.changed.fire();
    }, 200);
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.disposables.forEach((d) => d.dispose());
  }
}
