// Numbers, dtypes and shapes as people read them. One place, so that every view uses the same words. No editor API here.
import * as l10n from '@vscode/l10n';
import type { Num, Stats } from './protocol';

const SHORT: Record<string, string> = {
  float64: 'f64',
  float32: 'f32',
  float16: 'f16',
  bfloat16: 'bf16',
  int64: 'i64',
  int32: 'i32',
  int16: 'i16',
  int8: 'i8',
  uint64: 'u64',
  uint32: 'u32',
  uint16: 'u16',
  uint8: 'u8',
  bool: 'bool',
  bool_: 'bool',
};

/** `float32` → `f32`; a name not known is given back as it is. */
export const shortDtype = (dtype: string): string => SHORT[dtype] ?? dtype;

/** `f32[32,64]`; a scalar is `f32[]`. */
export const typeText = (dtype: string, shape: readonly number[]): string => `${shortDtype(dtype)}[${shape.join(',')}]`;

/** The last part of a path, of either system's. */
export const baseName = (path: string): string => path.split(/[\\/]/).at(-1) ?? path;

/** A number that came over JSON, where NaN and infinities are words. */
export const num = (x: Num | undefined): number => (x === undefined ? NaN : typeof x === 'number' ? x : Number(x));

/** `1204` → `1,204`. */
export const count = (n: number): string => n.toLocaleString('en-US', { maximumFractionDigits: 0 });

/** Three significant digits: `0.021`, `1.10`, `3.40e-3`, `12,300`; NaN and infinities as words. */
export function short(x: Num | undefined): string {
  const v = num(x);
  if (Number.isNaN(v)) return 'NaN';
  if (!Number.isFinite(v)) return v > 0 ? '+Inf' : '-Inf';
  if (v === 0) return '0';
  const size = Math.abs(v);
  if (Number.isInteger(v) && size < 1e6) return count(v);
  if (size >= 1e-2 && size < 999.5) return v.toPrecision(3);
  if (size >= 999.5 && size < 1e6) return count(Number(v.toPrecision(3)));
  return v.toExponential(2);
}

/** All digits that are there. */
export const full = (x: Num | undefined): string => {
  const v = num(x);
  return Number.isNaN(v) ? 'NaN' : Number.isFinite(v) ? String(v) : v > 0 ? '+Inf' : '-Inf';
};

/** The shortest digits that name a float32: `0.1`, where its exact value is 0.10000000149011612. */
export function shortestFloat32(v: number): string {
  for (let digits = 1; digits < 9; digits++) {
    const text = Number(v.toPrecision(digits));
    if (Math.fround(text) === v) return String(text);
  }
  return String(Number(v.toPrecision(9)));
}

/** `1536` → `1.5 KiB`. */
export function bytes(n: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let i = 0;
  while (n >= 1024 && i < units.length - 1) {
    n /= 1024;
    i++;
  }
  return `${i === 0 ? n : n >= 100 ? n.toFixed(0) : n.toFixed(1)} ${units[i]}`;
}

/** `NaN 3 of 320`, `+Inf 1 of 320 …`; empty when every element is finite. */
export function notFinite(s: Stats): string {
  const parts = (
    [
      ['NaN', s.nan],
      ['+Inf', s.pos_inf],
      ['-Inf', s.neg_inf],
    ] as const
  )
    .filter(([, n]) => (n ?? 0) > 0)
    .map(([word, n]) => `${word} ${count(n ?? 0)}`);
  return parts.length ? l10n.t`${parts.join(', ')} of ${count(s.count)}` : '';
}

/** The quantity a history is drawn of: root mean square for gradients (their mean says little), else the mean. */
export function measure(s: Stats, backward: boolean): number {
  const mean = num(s.mean);
  return backward ? Math.hypot(mean, num(s.std)) : mean;
}

/** One statistic for a row: what is wrong first; else the value (scalars), the size (gradients), or mean and deviation. */
export function statText(s: Stats, backward: boolean): string {
  const wrong = notFinite(s);
  if (wrong) return wrong;
  if (s.count === 0) return l10n.t('empty');
  if (s.count === 1) return `= ${short(s.mean)}`;
  return backward ? `|·| ${short(measure(s, true))}` : `μ ${short(s.mean)} σ ${short(s.std)}`;
}

/**
 * The one-line summary of a tensor, shorter: `f32[32,64]  min -3.2  max 4.1  mean 0.02  std 1.1` → `f32[32,64] μ 0.02 σ 1.1`. What it says
 * of NaN and infinities stays. A text of another form is given back as it is.
 */
export const inlineSummary = (summary: string): string =>
  summary
    .replace(/\s+/g, ' ')
    .replace(/ min \S+ max \S+(?= mean )/, '')
    .replace(/ mean (\S+)/, ' μ $1')
    .replace(/ std (\S+)/, ' σ $1');

const BLOCKS = '▁▂▃▄▅▆▇█';

/** Block characters scaled between the smallest and the largest value; a value that is not finite is `×`. */
export function sparkline(values: readonly number[], width = 8): string {
  const shown = values.slice(-width);
  const finite = shown.filter(Number.isFinite);
  const low = Math.min(...finite);
  const span = Math.max(...finite) - low;
  return shown
    .map((v) => (!Number.isFinite(v) ? '×' : (BLOCKS[span > 0 ? Math.min(7, Math.floor(((v - low) / span) * 8)) : 3] ?? '×')))
    .join('');
}
