// The figures beside a tensor's picture: statistics, and what a comparison found. Numbers have three digits; all of them on hover.
import * as l10n from '@vscode/l10n';
import type { Compared, Num, Stats } from '../src/protocol';
import { count, full, num, short } from '../src/text';
import type { Sides } from '../src/views/tensor_messages';
import { byId } from './parts';

const WORDS: Partial<Record<keyof Stats, string>> = {
  zero: l10n.t('zeros'),
  nan: 'NaN',
  pos_inf: '+Inf',
  neg_inf: '-Inf',
  count: l10n.t('elements'),
};
const SHOWN = ['min', 'max', 'mean', 'std', 'zero', 'nan', 'pos_inf', 'neg_inf', 'count'] as const;
const NOT_FINITE: readonly string[] = ['nan', 'pos_inf', 'neg_inf'];

interface Figure {
  name: string;
  value: string;
  exact?: string;
  /** Marked by a sign and the error colour. */
  bad?: boolean;
}

function fill(body: HTMLElement, figures: Figure[]): void {
  const rows = figures.map(({ name, value, exact, bad }) => {
    const row = document.createElement('tr');
    const head = Object.assign(document.createElement('th'), { textContent: name, scope: 'row' });
    const data = Object.assign(document.createElement('td'), { textContent: bad ? `⚠ ${value}` : value, title: exact ?? value });
    if (bad) data.className = 'bad';
    row.append(head, data);
    return row;
  });
  body.replaceChildren(...rows);
}

export function showStats(stats: Stats): void {
  const known = SHOWN.filter((name) => stats[name] !== undefined || name in WORDS);
  fill(
    byId('stats'),
    known.map((name) => {
      const value = stats[name] ?? 0;
      return {
        name: WORDS[name] ?? name,
        value: short(value),
        exact: full(value),
        bad: NOT_FINITE.includes(name) && num(value) > 0,
      };
    }),
  );
}

const share = (n: number, of: number): string => l10n.t`${count(n)} of ${count(of)}`;
const both = (a: string, b: string): string => l10n.t`${a} and ${b}`;

export const nothingCompared = (): void => void (byId('compared').hidden = true);

/** Which steps are compared is told wherever both are known, and marked where they differ though the tensors are two. */
function sidesText({ step, other, otherStep }: Sides): { title: string; apart: string } {
  const [here, there] = [step === undefined ? '' : count(step), otherStep === undefined ? '' : count(otherStep)];
  if (!other) return { title: here ? l10n.t`Step ${here} less step ${there}` : l10n.t`Difference from step ${there}`, apart: '' };
  if (!here || !there) return { title: l10n.t`Difference from ${other}`, apart: '' };
  if (here === there) return { title: l10n.t`Difference from ${other}, both at step ${here}`, apart: '' };
  const apart = l10n.t`⚠ Other steps: ${here} here, ${there} in ${other}, which has not kept this one.`;
  return { title: l10n.t`Difference from ${other}`, apart };
}

export function showCompared(answer: Compared, sides: Sides, tolerance: number, relative: number): void {
  byId('compared').hidden = false;
  const { elements, differ, over, nan, largest, mean, dtypes, first } = answer;
  const { title, apart } = sidesText(sides);
  byId('comparedTitle').textContent = title;
  byId('comparedSteps').textContent = apart;
  byId('comparedSteps').hidden = !apart;
  const limit = [tolerance ? short(tolerance) : '', relative ? l10n.t`${short(relative)} · |other|` : '']
    .filter(Boolean)
    .join(' + ');
  const figures: Figure[] = [
    { name: l10n.t('differ'), value: share(differ, elements) },
    { name: l10n.t`over ${limit || '0'}`, value: share(over, elements) },
  ];
  if (largest) {
    const value: Num = largest.value;
    figures.push({
      name: l10n.t`largest at [${(largest.index ?? []).join(', ')}]`,
      value: short(value),
      exact: full(value),
      bad: !Number.isFinite(num(value)),
    });
    figures.push({
      name: l10n.t('there'),
      value: both(brief(largest.a), brief(largest.b)),
      exact: both(largest.a, largest.b),
    });
  }
  figures.push({ name: l10n.t('mean size'), value: short(mean), exact: full(mean) });
  if (nan.a + nan.b)
    figures.push({
      name: l10n.t`NaN in one only, first at [${(first ?? []).join(', ')}]`,
      value: l10n.t`${count(nan.a)} here, ${count(nan.b)} there`,
      bad: true,
    });
  if (nan.both) figures.push({ name: l10n.t('NaN in both'), value: count(nan.both) });
  if (dtypes[0] !== dtypes[1]) figures.push({ name: l10n.t('dtypes'), value: both(dtypes[0], dtypes[1]) });
  fill(byId('differences'), figures);
}

const brief = (text: string): string => (Number.isFinite(Number(text)) ? short(Number(text)) : text);
