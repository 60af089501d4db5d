// Which debug sessions are ours, when they are ready for requests, and what they report. Every other room asks here.
import * as l10n from '@vscode/l10n';
import * as vscode from 'vscode';
import type { AdapterProcess, DapMessage } from './launch/adapter_process';
import { log } from './log';

export interface DvmEvent {
  session: vscode.DebugSession;
  name: string;
  body: unknown;
}

export class Sessions implements vscode.Disposable {
  private readonly live: vscode.DebugSession[] = [];
  private readonly configured = new Set<string>();
  private readonly stopped = new Set<string>();
  /** Those whose program has called a captured function. */
  private readonly stepping = new Set<string>();
  /** Adapters that are asked without the way through the editor's window, by session. */
  private readonly direct = new Map<string, AdapterProcess>();
  private readonly disposables: vscode.Disposable[] = [];
  private readonly ready = new vscode.EventEmitter<vscode.DebugSession>();
  private readonly ended = new vscode.EventEmitter<vscode.DebugSession>();
  private readonly events = new vscode.EventEmitter<DvmEvent>();
  private readonly runState = new vscode.EventEmitter<vscode.DebugSession>();

  /** The session has answered configurationDone: custom requests may be sent. */
  readonly onReady = this.ready.event;
  readonly onEnded = this.ended.event;
  /** Custom events dvm/*, in order. */
  readonly onEvent = this.events.event;
  /** The session stopped or went on; ask `isStopped`. */
  readonly onRunState = this.runState.event;

  constructor() {
    this.disposables.push(
      this.ready,
      this.ended,
      this.events,
      this.runState,
      vscode.debug.onDidStartDebugSession((session) => this.add(session)),
      vscode.debug.onDidTerminateDebugSession((session) => this.drop(session)),
      vscode.debug.registerDebugAdapterTrackerFactory('dvm', { createDebugAdapterTracker: (session) => this.track(session) }),
    );
  }

  /**
   * The session the user looks at, else the one started last. One that only starts others, as torchrun does, gives way to the first of
   * those that has tensors.
   */
  current(): vscode.DebugSession | undefined {
    const active = vscode.debug.activeDebugSession;
    if (active?.type !== 'dvm') return this.live.at(-1);
    if (this.stepping.has(active.id)) return active;
    const ranks = this.live.filter((s) => s.parentSession?.id === active.id && this.stepping.has(s.id));
    return ranks.sort((a, b) => a.name.localeCompare(b.name, undefined, { numeric: true }))[0] ?? active;
  }

  all(): readonly vscode.DebugSession[] {
    return this.live;
  }

  isReady(session: vscode.DebugSession): boolean {
    return this.configured.has(session.id);
  }

  isStopped(session: vscode.DebugSession): boolean {
    return this.stopped.has(session.id);
  }

  /** A request to a session (default: the current one); throws an Error with the adapter's text. */
  async request<T>(command: string, args: object = {}, session = this.current()): Promise<T> {
    if (!session)
      throw new Error(l10n.t('no DVM debug session is running: start one with F5 and a launch configuration of type "dvm"'));
    const direct = this.direct.get(session.id);
    return direct ? direct.request<T>(command, args) : ((await session.customRequest(command, args)) as T);
  }

  /** From now on the session's adapter is that process. */
  reached(session: vscode.DebugSession, adapter: AdapterProcess): void {
    this.direct.set(session.id, adapter);
  }

  /** An event of a session's adapter. */
  receive(session: vscode.DebugSession, { event = '', body }: Pick<DapMessage, 'event' | 'body'>): void {
    if (!event.startsWith('dvm/')) return this.standard(session, event);
    if (event === 'dvm/step') this.stepping.add(session.id);
    if (event === 'dvm/restarted') this.stepping.delete(session.id);
    this.events.fire({ session, name: event, body });
  }

  private standard(session: vscode.DebugSession, event: string): void {
    if (event === 'stopped') this.stopped.add(session.id);
    else if (event === 'continued') this.stopped.delete(session.id);
    else return;
    this.runState.fire(session);
  }

  private add(session: vscode.DebugSession): void {
    if (session.type !== 'dvm') return;
    this.live.push(session);
    void vscode.commands.executeCommand('setContext', 'dvm.session', true);
  }

  private drop(session: vscode.DebugSession): void {
    const at = this.live.findIndex((s) => s.id === session.id);
    if (at < 0) return;
    this.live.splice(at, 1);
    this.configured.delete(session.id);
    this.stopped.delete(session.id);
    this.stepping.delete(session.id);
    this.direct.delete(session.id);
    void vscode.commands.executeCommand('setContext', 'dvm.session', this.live.length > 0);
    this.ended.fire(session);
  }

  private track(session: vscode.DebugSession): vscode.DebugAdapterTracker {
    return {
      onDidSendMessage: (m: DapMessage) => {
        if (m.type === 'event') this.receive(session, m);
        if (m.type !== 'response' || !m.success) return;
        if (m.command === 'configurationDone') {
          this.configured.add(session.id);
          this.ready.fire(session);
        } else if (m.command === 'continue') this.standard(session, 'continued');
      },
      onError: (error) => log.error(`${session.name}: ${error.message}`),
      onExit: (code) => {
        if (code) log.error(`${session.name}: the debug adapter exited with code ${code}`);
      },
    };
  }

  dispose(): void {
    this.disposables.forEach((d) => d.dispose());
  }
}
