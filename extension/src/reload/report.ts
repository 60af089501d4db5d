// What a hot reload did, in words: for the status bar, its tooltip, and the page behind "Why". No editor API here.
import * as l10n from '@vscode/l10n';
import type { Reload } from '../protocol';
import { count, short } from '../text';

/** One line: `applied at step 1,042 · 3 of 41 instructions · 1.80 ms`, `refused: …`, `no change`. */
export function reloadLine(r: Reload): string {
  if (r.outcome === 'refused') return l10n.t`refused: ${firstSentence(r.reasons?.[0] ?? l10n.t('no reason was given'))}`;
  if (r.outcome === 'unchanged') return r.reasons?.[0] ? l10n.t`no change: ${firstSentence(r.reasons[0])}` : l10n.t('no change');
  const parts = [outcomeLine(r), ...changeWords(r.changes ?? [])];
  if (r.instructionsTotal) parts.push(patched(r, r.instructionsTotal));
  if (r.ms !== undefined) parts.push(`${short(r.ms)} ms`);
  return parts.join(' · ');
}

function outcomeLine({ undone, step, pending }: Reload): string {
  if (pending && step !== undefined) return l10n.t`will be in force from step ${count(step)}`;
  if (step === undefined) return undone ? l10n.t('undone') : l10n.t('applied');
  return undone ? l10n.t`undone at step ${count(step)}` : l10n.t`applied at step ${count(step)}`;
}

const patched = (r: Reload, total: number): string =>
  total === 1
    ? l10n.t`${count(r.instructionsPatched ?? 0)} of ${count(total)} instruction`
    : l10n.t`${count(r.instructionsPatched ?? 0)} of ${count(total)} instructions`;

type Change = NonNullable<Reload['changes']>[number];

/** What took effect: the first change in a few words, and how many more there are. */
export function changeWords(changes: readonly Change[]): string[] {
  const [first, ...rest] = changes;
  if (!first) return [];
  const words = changeText(first);
  return [rest.length ? l10n.t`${words} and ${count(rest.length)} more` : words];
}

/** `RATE: 0.1 → 0.2`, `forward: inserted h = relu(h)`, `new function scale`. */
function changeText({ function: name = '', what = '', old, new: now }: Change): string {
  const [before, after] = [brief(old), brief(now)];
  if (what === 'inserted') return l10n.t`${name}: inserted ${after}`;
  if (what === 'deleted') return l10n.t`${name}: deleted ${before}`;
  if (what.startsWith('new ')) return `${what} ${name}`;
  return before.length + after.length > BRIEF ? l10n.t`${name}: now ${after}` : `${name}: ${before} → ${after}`;
}

const BRIEF = 32;
function brief(value: unknown): string {
  const text = (typeof value === 'string' ? value : (JSON.stringify(value) ?? '')).replace(/\s+/g, ' ').trim();
  return text.length > BRIEF ? `${text.slice(0, BRIEF - 1)}…` : text;
}

/** The status bar has little room: a reason's first line, at most 60 characters. */
function firstSentence(reason: string): string {
  const line = reason.split('\n')[0] ?? '';
  return line.length > 60 ? `${line.slice(0, 57)}...` : line;
}

const OUTCOME: Record<Reload['outcome'], string> = {
  applied: l10n.t('The edit is in force.'),
  unchanged: l10n.t('Nothing that runs has changed.'),
  refused: l10n.t('The program runs on with the code it had.'),
};

const TITLE: Record<Reload['outcome'], string> = {
  applied: l10n.t('Hot reload: applied'),
  unchanged: l10n.t('Hot reload: unchanged'),
  refused: l10n.t('Hot reload: refused'),
};

/** The page behind "Why", as Markdown. */
export function reloadPage(r: Reload): string {
  const lines = [
    `# ${r.undone && r.outcome === 'applied' ? l10n.t('Hot reload: undone') : TITLE[r.outcome]}`,
    '',
    r.path ? `\`${r.path}\`` : '',
    '',
    OUTCOME[r.outcome],
    '',
  ];
  if (r.reasons?.length)
    lines.push(`## ${l10n.t('Reasons')}`, '', ...r.reasons.map((reason) => `- ${reason.replaceAll('\n', '\n  ')}`), '');
  if (r.changes?.length) {
    const heads = [l10n.t('function'), l10n.t('change'), l10n.t('before'), l10n.t('after')];
    lines.push(`## ${l10n.t('Changes')}`, '', `| ${heads.join(' | ')} |`, '|:--|:--|:--|:--|');
    for (const c of r.changes) lines.push(`| ${[c.function, c.what, c.old, c.new].map(cell).join(' | ')} |`);
    lines.push('');
  }
  const facts = [
    r.step === undefined ? '' : `- ${l10n.t`in force since step ${count(r.step)}`}`,
    r.instructionsTotal ? `- ${l10n.t`${patched(r, r.instructionsTotal)} patched`}` : '',
    r.ms === undefined ? '' : `- ${short(r.ms)} ms`,
  ].filter(Boolean);
  if (r.outcome === 'applied' && facts.length) lines.push(`## ${l10n.t('Facts')}`, '', ...facts, '');
  return lines.join('\n');
}

const cell = (x: unknown): string => {
  if (x === undefined || x === null) return '';
  const text = typeof x === 'string' ? x : JSON.stringify(x);
  return text.replaceAll('|', '\\|').replaceAll('\n', ' ');
};

/** A place `file.py:12` in a reason, for a mark in the editor. */
export function placeIn(reason: string): { path: string; line: number } | undefined {
  const match = /((?:[A-Za-z]:)?[^\s:"'()]+\.py):(\d+)/.exec(reason);
  return match ? { path: match[1] ?? '', line: Number(match[2]) } : undefined;
}
