// The two status bar items: device and step, and what the last hot reload did.
import * as l10n from '@vscode/l10n';
import * as vscode from 'vscode';
import { log, messageOf } from '../log';
import type { Reload, Status } from '../protocol';
import type { Sessions } from '../sessions';
import { launchesText, programsText } from '../programs/model';
import { count } from '../text';
import { reloadLine } from './report';

export class StatusBar implements vscode.Disposable {
  private readonly device = vscode.window.createStatusBarItem('dvm.device', vscode.StatusBarAlignment.Left, 50);
  private readonly reload = vscode.window.createStatusBarItem('dvm.reload', vscode.StatusBarAlignment.Left, 49);
  private readonly disposables: vscode.Disposable[] = [this.device, this.reload];
  private status: Status = {};
  private timer: NodeJS.Timeout | undefined;
  /** The session that was asked last for what no event tells. */
  private asked: string | undefined;

  constructor(private readonly sessions: Sessions) {
    this.device.name = l10n.t('DVM: Device and Step');
    this.device.command = 'dvm.device';
    this.reload.name = l10n.t('DVM: Hot Reload');
    this.reload.command = 'dvm.reload.why';
    this.disposables.push(
      sessions.onReady((session) => this.begin(session)),
      sessions.onEnded(() => {
        if (sessions.all().length) return;
        this.device.hide();
        this.reload.hide();
        this.status = {};
      }),
      sessions.onRunState((session) => {
        if (sessions.isStopped(session)) void this.ask(session);
      }),
      sessions.onEvent((e) => {
        if (e.session.id !== sessions.current()?.id) return;
        if (e.name === 'dvm/restarted') this.begin(e.session);
        if (e.name === 'dvm/step' && e.session.id !== this.asked) void this.ask(e.session); // another rank than before
        if (e.name === 'dvm/step') this.update({ step: (e.body as { step: number }).step });
        if (e.name === 'dvm/device') this.update({ ...(e.body as Status), pending: undefined });
      }),
    );
  }

  /** A reload is under way: a spinner, since building may take a moment. */
  showReloading(): void {
    this.reload.text = `$(sync~spin) ${l10n.t('reloading')}`;
    this.reload.tooltip = undefined;
    this.reload.backgroundColor = undefined;
    this.reload.show();
  }

  showReload(r: Reload): void {
    const icon = { applied: '$(zap)', unchanged: '$(check)', refused: '$(warning)' }[r.outcome];
    this.reload.text = `${icon} ${reloadLine(r)}`;
    const tooltip = new vscode.MarkdownString(undefined, true);
    tooltip.isTrusted = { enabledCommands: ['dvm.reload.why', 'dvm.reload.diff', 'dvm.reload.undo'] };
    tooltip.appendText(l10n.t`Hot reload ${r.path ?? ''}`).appendMarkdown('\n\n');
    (r.reasons ?? []).forEach((reason) => tooltip.appendText(reason).appendMarkdown('\n\n'));
    const undo = r.outcome === 'applied' && !r.undone ? ` · [${l10n.t('Undo')}](command:dvm.reload.undo)` : '';
    const diff = r.outcome === 'applied' && r.instructionsTotal ? ` · [${l10n.t('What changed')}](command:dvm.reload.diff)` : '';
    tooltip.appendMarkdown(`[${l10n.t('Why')}](command:dvm.reload.why)${diff}${undo}`);
    this.reload.tooltip = tooltip;
    this.reload.backgroundColor = r.outcome === 'refused' ? new vscode.ThemeColor('statusBarItem.warningBackground') : undefined;
    this.reload.accessibilityInformation = { label: l10n.t`Hot reload ${reloadLine(r)}`, role: 'button' };
    this.reload.show();
  }

  /** Lets the user choose among the session's devices and switches to the choice. */
  async chooseDevice(): Promise<void> {
    const status = await this.sessions.request<Status>('dvm/status');
    const devices = status.devices ?? (status.device ? [status.device] : []);
    const items = devices.map((label) => ({ label, description: label === status.device ? l10n.t('now') : '' }));
    const chosen = await vscode.window.showQuickPick(items, { title: l10n.t('Run tensors on') });
    if (!chosen || chosen.label === status.device) return;
    const answer = await this.sessions.request<Status>('dvm/device', { device: chosen.label });
    this.update({ ...answer, pending: answer.pending });
  }

  private begin(session: vscode.DebugSession): void {
    const configured = (session.configuration['dvm'] as { device?: string } | undefined)?.device;
    this.reload.hide();
    this.status = { device: configured ?? 'cpu' };
    this.draw();
  }

  private async ask(session: vscode.DebugSession): Promise<void> {
    this.asked = session.id;
    try {
      this.update(await this.sessions.request<Status>('dvm/status', {}, session));
    } catch (error) {
      log.debug(`dvm/status: ${messageOf(error)}`);
    }
  }

  private update(part: Status): void {
    this.status = { ...this.status, ...part };
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.draw();
    }, 200);
  }

  private draw(): void {
    if (!this.sessions.all().length) return;
    const { device = 'cpu', pending, rank, step, programs, launches, selectorHitRate } = this.status;
    const where = typeof rank === 'number' && this.sessions.all().length > 1 ? ` · ${l10n.t`rank ${rank}`}` : '';
    const next = pending ? ` → ${pending}` : '';
    this.device.text = `$(circuit-board) ${device}${next}${where}${step === undefined ? '' : ` · ${l10n.t`step ${count(step)}`}`}`;
    const facts = [
      l10n.t`device ${device}`,
      pending ? l10n.t`${pending} when this step has ended` : '',
      programs === undefined ? '' : `${programsText(programs)}, ${launchesText(launches ?? 0)}`,
      typeof selectorHitRate === 'number' ? l10n.t`selector hits ${(100 * selectorHitRate).toFixed(1)} %` : '',
      l10n.t('click to switch the device'),
    ];
    this.device.tooltip = facts.filter(Boolean).join('\n');
    this.device.show();
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.disposables.forEach((d) => d.dispose());
  }
}
