// What the Programs view says of functions, programs, areas and instructions. No editor API here.
import * as l10n from '@vscode/l10n';
import type { Advice, AreaInfo, InstructionInfo, ProgramInfo } from '../protocol';
import { baseName, count } from '../text';

/** A range of an area is opened at once; a larger area is shown in ranges of this many instructions. */
export const RANGE = 500;

const areas = (n: number): string => (n === 1 ? l10n.t('1 area') : l10n.t`${count(n)} areas`);
const instructions = (n: number): string => (n === 1 ? l10n.t('1 instruction') : l10n.t`${count(n)} instructions`);
export const programsText = (n: number): string => (n === 1 ? l10n.t('1 program') : l10n.t`${count(n)} programs`);
export const launchesText = (n: number): string => (n === 1 ? l10n.t('1 launch') : l10n.t`${count(n)} launches`);
const facts = (...parts: (string | false | undefined)[]): string => parts.filter(Boolean).join(' · ');

/** `950 ns`, `5.38 µs`, `1.20 ms`, `3.00 s`; '' where nothing was measured. */
export function duration(ns: number): string {
  if (!(ns > 0)) return '';
  const units: [number, string][] = [
    [1e3, 'ns'],
    [1e6, 'µs'],
    [1e9, 'ms'],
  ];
  for (const [limit, unit] of units)
    if (ns < limit * 0.9995) {
      const value = (ns / limit) * 1e3;
      return `${value < 10 ? value.toFixed(2) : value < 100 ? value.toFixed(1) : value.toFixed(0)} ${unit}`;
    }
  return `${(ns / 1e9).toFixed(2)} s`;
}

/** Nanoseconds of a function's launch, kernels and the VM's own work together. */
export function launchTime(advice: Advice | undefined): number {
  const f = advice?.figures;
  return f?.launches ? ((f.own_us + f.kernels_us + f.waiting_us) * 1e3) / f.launches : 0;
}

/** `pays · 24.3 µs a launch · 212 launches`. */
export function functionFacts(programs: readonly ProgramInfo[], advice: Advice | undefined): string {
  const time = duration(launchTime(advice));
  const launches = programs.reduce((sum, p) => sum + p.launches, 0);
  return facts(verdictOf(advice), time && l10n.t`${time} a launch`, launchesText(launches));
}

export interface Fact {
  icon: string;
  name: string;
  value: string;
  tooltip: string;
}

/** The sign of a verdict: a shape, beside the word. */
const VERDICT: Record<string, string> = { pays: 'pass', 'does not pay': 'circle-slash' };
const WORDS: Record<string, string> = {
  pays: l10n.t('pays'),
  'does not pay': l10n.t('does not pay'),
  'not enough data': l10n.t('not enough data'),
};

export const verdictOf = (advice: Advice | undefined): string => (advice ? (WORDS[advice.verdict] ?? advice.verdict) : '');

/** `main.<locals>.loss_fn` is `loss_fn` to whoever wrote it. */
export const shortName = (name: string): string => name.split('<locals>.').at(-1) || name;

/** What is known of a function besides its programs, a row each: verdict, time, selector. */
export function functionRows(advice: Advice | undefined): Fact[] {
  if (!advice) return [];
  const { figures: f } = advice;
  const each = (us: number): string => duration((us * 1e3) / Math.max(f.launches, 1)) || '0';
  const time = facts(
    l10n.t`${each(f.kernels_us)} kernels`,
    l10n.t`${each(f.own_us)} the VM itself`,
    f.waiting_us > 0 && l10n.t`${each(f.waiting_us)} waiting`,
  );
  const looked = f.hits + f.misses;
  const notes = advice.notes.map((note) => `\n${note}`).join('');
  return [
    {
      icon: VERDICT[advice.verdict] ?? 'question',
      name: verdictOf(advice),
      value: advice.do,
      tooltip: `${advice.why}\n${l10n.t`What to do: ${advice.do}`}${notes}`,
    },
    {
      icon: 'watch',
      name: l10n.t('time of a launch'),
      value: time,
      tooltip: `${time}\n${l10n.t`mean of ${count(f.launches)} launches`}`,
    },
    {
      icon: 'checklist',
      name: l10n.t('code was ready'),
      value: looked ? l10n.t`${((100 * f.hits) / looked).toFixed(1)} % of ${count(looked)} look-ups` : l10n.t('never asked for'),
      tooltip: l10n.t`selector: ${count(f.hits)} hits, ${count(f.misses)} misses; ${count(f.shapes)} sets of shapes`,
    },
  ];
}

const direction = (p: ProgramInfo): string => (p.backward ? l10n.t('backward') : l10n.t('forward'));

/** `forward #1`. */
export const programLabel = (p: ProgramInfo): string => `${direction(p)} #${p.id}`;

/** `f32[32…48,64] · 5.38 µs · 41 instructions · 3 areas · 212 launches`: what the shapes were, most telling first. */
export function programDescription(p: ProgramInfo): string {
  const shapes = (p.shapes ?? []).slice(0, 2).join(', ') + ((p.shapes ?? []).length > 2 ? ', …' : '');
  return facts(shapes, duration(p.ns ?? 0), instructions(p.instructions), areas(p.areas), launchesText(p.launches));
}

export const programTooltip = (p: ProgramInfo): string =>
  [
    l10n.t`Program ${p.id}, ${direction(p)} of ${p.name}`,
    `${l10n.t`inputs: ${p.inputs ?? 0}`}${p.shapes?.length ? ` (${p.shapes.join(', ')}${(p.inputs ?? 0) > p.shapes.length ? ', …' : ''})` : ''}`,
    l10n.t`sets of shapes and hooks that code is ready for: ${p.segments ?? 0}`,
    l10n.t`last launch: ${duration(p.ns ?? 0) || l10n.t('not measured')}`,
  ].join('\n');

export const areaLabel = (a: AreaInfo): string => `${l10n.t`area ${a.index}`} · ${a.kind}`;

/** `5.38 µs · 7 instructions · ends: nothing more to fuse`. */
export const areaDescription = (a: AreaInfo): string =>
  facts(duration(a.ns), instructions(a.instructions), l10n.t`ends: ${a.reason}`);

export function areaTooltip(a: AreaInfo): string {
  const beside = a.stack.filter((n) => n !== a.index);
  return [
    l10n.t`Why area ${a.index} is not fused with more: ${a.reason}`,
    l10n.t`tiles: ${count(a.tiles)} of ${count(a.tileRows)} × ${count(a.tileCols)}`,
    beside.length ? l10n.t`runs side by side with area ${beside.join(', ')}` : '',
    a.ns ? l10n.t`last launch: ${duration(a.ns)}` : '',
  ]
    .filter(Boolean)
    .join('\n');
}

/** `%4 = EXP(%3) f32[32,48]` as what is done and what it gives. */
export function splitText(text: string): { call: string; type: string } {
  const at = text.lastIndexOf(') ');
  return at < 0 ? { call: text, type: '' } : { call: text.slice(0, at + 1), type: text.slice(at + 2) };
}

export const placeText = (i: { file?: string; line?: number }): string =>
  i.file && i.line ? `${baseName(i.file)}:${i.line}` : '';

/** `f32[32,48] · h · model.py:42`. */
export const instructionDescription = (i: InstructionInfo): string =>
  facts(
    splitText(i.text).type,
    i.name,
    placeText(i),
    i.backward && l10n.t('backward'),
    i.foldedInto >= 0 && l10n.t`merged into %${i.foldedInto + 1}`,
  );

export function instructionTooltip(i: InstructionInfo): string {
  return [
    i.text,
    i.name ? l10n.t`the variable ${i.name}` : '',
    i.file ? `${i.file}:${i.line}${i.function ? ` (${i.function})` : ''}` : l10n.t('no source line is known'),
    i.backward ? l10n.t('the gradient of this line') : '',
    i.foldedInto >= 0 ? l10n.t`no work of its own: merged into instruction ${i.foldedInto}` : '',
    i.breakpoint ? l10n.t('the program stops before it') : '',
  ]
    .filter(Boolean)
    .join('\n');
}

/** [first, end) of the ranges a long list is shown in; [] if it is short enough to be shown as it is. */
export function ranges(total: number): [number, number][] {
  if (total <= RANGE) return [];
  return Array.from({ length: Math.ceil(total / RANGE) }, (_, i) => [i * RANGE, Math.min((i + 1) * RANGE, total)]);
}

/** Functions in the order they were captured, each with its programs. */
export function byFunction(programs: readonly ProgramInfo[]): Map<string, ProgramInfo[]> {
  const found = new Map<string, ProgramInfo[]>();
  for (const p of [...programs].sort((a, b) => a.id - b.id)) found.set(p.name, [...(found.get(p.name) ?? []), p]);
  return found;
}
