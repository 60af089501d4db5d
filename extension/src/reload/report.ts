// What a hot reload did, in words: for the status bar, its tooltip, and the page behind "Why". No editor API here.
import * as l10n from '@vscode/l10n';
import type { Reload } from '../protocol';
import { count, short } from '../text';

/** One line: `applied at step 1,042 · 3 of 41 instructions · 1.80 ms`, `refused: …`, `no change`. */
export function reloadLine(r: Reload): string {
  if (r.outcome === 'refused') return l10n.t`refused: ${firstSentence(r.reasons?.[0] ?? l10n.t('no reason was given'))}`;
  if (r.outcome === 'unchanged') return r.reasons?.[0] ? l10n.t`no change: ${firstSentence(r.reasons[0])}` : l10n.t('no change');
  const parts = [outcomeLine(r)];
  if (r.instructionsTotal) parts.push(patched(r, r.instructionsTotal));
  if (r.ms !== undefined) parts.push(`${short(r.ms)} ms`);
  return parts.join(' · ');
}

function outcomeLine({ undone, step }: Reload): string {
  if (step === undefined) return undone ? l10n.t('undone') : l10n.t('applied');
  return undone ? l10n.t`undone at step ${count(step)}` : l10n.t`applied at step ${count(step)}`;
}

const patched = (r: Reload, total: number): string =>
  total === 1
    ? l10n.t`${count(r.instructionsPatched ?? 0)} of ${count(total)} instruction`
    : l10n.t`${count(r.instructionsPatched ?? 0)} of ${count(total)} instructions`;

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

/** Lines of the new text (from 0) that are not in the old one: what a reload put in force. Common ends are cut off, the rest is compared by LCS. */
export function changedLines(before: string, after: string): number[] {
  const a = before.split(/\r?\n/);
  const b = after.split(/\r?\n/);
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const x = a.slice(head, a.length - tail);
  const y = b.slice(head, b.length - tail);
  const inserted = y.map((_, i) => head + i);
  // Quadratic: beyond this the whole middle counts as changed.
  if (x.length * y.length > 4_000_000) return inserted;
  const length = Array.from({ length: x.length + 1 }, () => new Uint32Array(y.length + 1));
  const at = (i: number, j: number): number => length[i]?.[j] ?? 0;
  for (let i = x.length - 1; i >= 0; i--)
    for (let j = y.length - 1; j >= 0; j--) {
      const row = length[i];
      if (row) row[j] = x[i] === y[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
    }
  const kept = new Set<number>();
  for (let i = 0, j = 0; i < x.length && j < y.length; ) {
    if (x[i] === y[j]) {
      kept.add(head + j);
      i++;
      j++;
    } else if (at(i + 1, j) >= at(i, j + 1)) i++;
    else j++;
  }
  return inserted.filter((line) => !kept.has(line));
}

/** A place `file.py:12` in a reason, for a mark in the editor. */
export function placeIn(reason: string): { path: string; line: number } | undefined {
  const match = /((?:[A-Za-z]:)?[^\s:"'()]+\.py):(\d+)/.exec(reason);
  return match ? { path: match[1] ?? '', line: Number(match[2]) } : undefined;
}
