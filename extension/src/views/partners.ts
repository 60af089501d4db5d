// What a tensor can be compared with: an earlier step, another watch, an expression, the same tensor in another session (a rank).
import * as l10n from '@vscode/l10n';
import * as vscode from 'vscode';
import type { Kept, TensorView } from '../protocol';
import type { Sessions } from '../sessions';
import type { WatchModel } from '../watch/model';
import { newestCommon } from './planes';
import type { Partner } from './tensor_messages';
import type { Named, Target } from './tensor_panel';

/** Most bytes that are brought over from another process. */
const MAX_BYTES = 16 << 20;

/** What is compared: the step it is of, and those it may be of instead. */
interface Own {
  step: number | undefined;
  kept: readonly Kept[];
}

/** The other side, and the one of the own snapshots to compare with it where that is another than asked for. */
interface Found {
  b: object;
  other: string;
  otherStep?: number | undefined;
  instead?: Kept | undefined;
}

export class Partners implements vscode.Disposable {
  /** A watch whose values are asked for because something is compared with it. */
  private held: string | undefined;

  constructor(
    private readonly sessions: Sessions,
    private readonly model: WatchModel,
  ) {}

  /** Beside the steps, which the page knows. */
  all(session: vscode.DebugSession, target: Target): Partner[] {
    const watches = this.model
      .all()
      .filter((d) => d.key !== target.watch)
      .map((d) => ({ id: `watch:${d.key}`, label: l10n.t`watch ${d.expression}` }));
    const others = this.sessions
      .all()
      .filter((s) => s.id !== session.id && this.sessions.isReady(s))
      .map((s) => ({ id: `session:${s.id}`, label: l10n.t`the same in ${s.name}` }));
    return [...watches, ...others];
  }

  async askExpression(): Promise<Partner | undefined> {
    const text = await vscode.window.showInputBox({
      title: l10n.t('Compare with'),
      prompt: l10n.t('A variable or an expression of tensors, as at the stop'),
      placeHolder: 'h * 0.5',
    });
    return text?.trim() ? { id: `expression:${text.trim()}`, label: text.trim() } : undefined;
  }

  /** How the other tensor is named in dvm/compare: of the same step if it has that, else of the newest that both have, else its newest. */
  async resolve(
    partner: string,
    session: vscode.DebugSession,
    target: Target,
    own: Own,
    named: (snapshot: number) => Named,
  ): Promise<Found> {
    const at = partner.indexOf(':');
    const [kind, rest] = [partner.slice(0, at), partner.slice(at + 1)];
    this.hold(kind === 'watch' ? rest : undefined);
    switch (kind) {
      case 'snapshot':
        return { b: named(Number(rest)), other: '' };
      case 'expression':
        return { b: { expression: rest }, other: rest };
      case 'watch':
        return this.ofWatch(rest, session, own, this.model.find(rest)?.expression ?? l10n.t('the other'));
      case 'session':
        return this.ofSession(rest, target, own);
    }
    throw new Error(l10n.t`There is nothing called ${partner} to compare with.`);
  }

  private async ofWatch(key: string, session: vscode.DebugSession, own: Own, other: string): Promise<Found> {
    const watchId = this.model.watchId(key, session);
    if (watchId === undefined) throw new Error(l10n.t('The other is not watched in this session.'));
    const view = await this.sessions.request<TensorView>('dvm/view', { watchId, most: [1, 1] }, session);
    const kept = view.kept ?? [];
    const same = kept.filter((k) => k.step === own.step).at(-1);
    const common = same ? undefined : newestCommon(own.kept, kept);
    const found = same ?? common?.other ?? kept.at(-1);
    const b = { watchId, ...(found ? { snapshot: found.snapshot } : {}) };
    return { b, other, otherStep: found?.step, instead: common?.own };
  }

  private async ofSession(id: string, target: Target, own: Own): Promise<Found> {
    const other = this.sessions.all().find((s) => s.id === id);
    if (!other) throw new Error(l10n.t('The other session has ended.'));
    const watched = target.watch !== undefined && this.model.watchId(target.watch, other) !== undefined;
    if (!watched && !(this.sessions.isStopped(other) && target.expression))
      throw new Error(l10n.t`${target.name} is not watched in ${other.name}, and ${other.name} is not stopped.`);
    const found = watched ? await this.ofWatch(target.watch ?? '', other, own, other.name) : undefined;
    const named = found?.b ?? { expression: target.expression ?? target.name };
    type Bytes = TensorView & { data?: string };
    const tensor = await this.sessions.request<Bytes>('dvm/tensor', { ...named, maxBytes: MAX_BYTES }, other);
    if (tensor.data === undefined) throw new Error(tensor.reason ?? l10n.t`${other.name} has no values of it.`);
    const { data, dtype, shape } = tensor;
    return { other: other.name, ...found, b: { data, dtype, shape, name: other.name } };
  }

  private hold(key: string | undefined): void {
    if (key === this.held) return;
    if (this.held !== undefined) void this.model.setValues(this.held, false);
    if (key !== undefined) void this.model.setValues(key, true);
    this.held = key;
  }

  dispose(): void {
    this.hold(undefined);
  }
}
