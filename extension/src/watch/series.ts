// One watched tensor: what is watched, and the samples that came in. No editor API here.
import * as l10n from '@vscode/l10n';
import { measure, notFinite, sparkline, statText, typeText } from '../text';
import { placeholderReason, type Snapshot, type Stats } from '../protocol';

/** What the user asked to watch. Kept in the workspace's state, so it holds from one session to the next. */
export interface Definition {
  /** Stable over sessions; the adapter's watch ids are not. */
  key: string;
  expression: string;
  everyN: number;
  /** Where it was asked for: the line that computes it. */
  path?: string;
  line?: number;
  /** An instruction's result: its program's number means something in this session alone. */
  of?: { program: number; instruction: number; session: string };
}

/** Statistics of one step. */
export interface Sample {
  step: number;
  stats: Stats;
}

export type Health = 'waiting' | 'finite' | 'notFinite' | 'placeholder' | 'failed';

/** Samples of one definition in one session, oldest first, at most `limit`. */
export class Series {
  private readonly values: number[] = [];
  private readonly taken: Sample[] = [];
  last: Snapshot | undefined;
  /** The latest sample that had statistics; shown beside a placeholder. */
  lastStats: Stats | undefined;
  samples = 0;
  placeholders = 0;
  /** First step at which a value was NaN or infinite. */
  firstBadStep: number | undefined;
  /** Why the newest snapshot of its values has none; '' if it has, or none were asked for. */
  missing = '';
  /** Why the adapter refused the watch. */
  error: string | undefined;
  /** What the adapter said when it took the watch, e.g. that nothing has matched yet. */
  message: string | undefined;

  constructor(private readonly limit: number) {}

  add(snapshot: Snapshot): void {
    this.last = snapshot;
    this.samples++;
    if (placeholderReason(snapshot)) this.placeholders++;
    const { stats } = snapshot;
    if (!stats) return;
    this.lastStats = stats;
    const bad = notFinite(stats) !== '';
    if (bad) this.firstBadStep ??= snapshot.step;
    this.values.push(bad ? NaN : measure(stats, snapshot.backward ?? false));
    this.taken.push({ step: snapshot.step, stats });
    for (const kept of [this.values, this.taken]) if (kept.length > this.limit) kept.splice(0, kept.length - this.limit);
  }

  /** The samples that had statistics, oldest first. */
  all(): readonly Sample[] {
    return this.taken;
  }

  /** Statistics taken at that step, the newest of it. */
  at(step: number): Stats | undefined {
    return [...this.taken].reverse().find((s) => s.step === step)?.stats;
  }

  history(): readonly number[] {
    return this.values;
  }

  health(): Health {
    if (this.error) return 'failed';
    if (!this.last) return 'waiting';
    if (this.missing || placeholderReason(this.last)) return 'placeholder';
    return this.last.stats && notFinite(this.last.stats) ? 'notFinite' : 'finite';
  }
}

/**
 * A row's text behind the name: `μ 0.021 σ 1.10  ▁▂▃▅▆  f32[32,64]  step 1,204`, or why there are no values. What changes comes first: a
 * side bar is narrow, and what does not fit is cut off at the end.
 */
export function rowText(series: Series | undefined): string {
  if (!series || series.health() === 'waiting') return series?.message || l10n.t('waiting for its line to run');
  if (series.error) return series.error;
  const { last } = series;
  if (!last) return '';
  const step = l10n.t`step ${last.step.toLocaleString('en-US')}`;
  const type = typeText(last.dtype, last.shape);
  const reason = series.missing || placeholderReason(last);
  if (reason) return [reason, type, step].join('  ');
  const stat = last.stats ? statText(last.stats, last.backward ?? false) : '';
  return [stat, sparkline(series.history()), type, step].filter(Boolean).join('  ');
}

/** The row for a screen reader: state in words first. */
export function spokenText(definition: Definition, series: Series | undefined): string {
  const health = series?.health() ?? 'waiting';
  const words: Record<Health, string> = {
    waiting: l10n.t('no sample yet'),
    finite: l10n.t('finite'),
    notFinite: l10n.t('not finite'),
    placeholder: l10n.t('values missing'),
    failed: l10n.t('cannot be watched'),
  };
  return `${definition.expression}, ${words[health]}, ${rowText(series).replace(/[▁▂▃▄▅▆▇█×]/g, '')}`;
}
