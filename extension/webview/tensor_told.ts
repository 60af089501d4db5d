// What a tensor's page says of the tensor in words and figures: where and when it was made, its statistics, why values are missing.
import * as l10n from '@vscode/l10n';
import { placeholderReason, type Stats } from '../src/protocol';
import { baseName } from '../src/text';
import { byId, say } from './parts';
import { askStats, settled } from './tensor_asking';
import { drawHistogram } from './tensor_charts';
import { showStats } from './tensor_figures';
import { page, stepText } from './tensor_state';
import { picture } from './tensor_window';

/** Figures and charts follow a running program at a pace that can be read. */
const CALM_MS = 500;

let statsAsked = 0;
export function askStatsCalmly(): void {
  if (page.state?.running && Date.now() - statsAsked < CALM_MS) return;
  statsAsked = Date.now();
  askStats();
}

let calm: ReturnType<typeof setTimeout> | undefined;
export function gotStats(now: Stats): void {
  page.stats = now;
  calm ??= setTimeout(
    () => {
      calm = undefined;
      if (!page.stats) return;
      showStats(page.stats);
      drawHistogram(byId('bars'), page.stats);
    },
    page.state?.running ? CALM_MS : 0,
  );
}

export function showPlace(): void {
  const { view } = page;
  const link = byId<HTMLAnchorElement>('place');
  link.hidden = !view?.place;
  if (view?.place) say('place', l10n.t`made at ${baseName(view.place.path)}:${view.place.line}`);
  say('when', [view?.step === undefined ? '' : stepText(view.step), view?.device ?? ''].filter(Boolean).join(' · '));
}

/** Why there are no values, in words and in the placeholder's colour; else what went wrong. */
export function showNote(): void {
  const { snapshot, state, view, mistake } = page;
  const missing = snapshot === undefined ? state?.missing || (view ? placeholderReason(view) : '') : '';
  const note = byId('note');
  const still = missing && picture.shown && view?.step !== undefined ? l10n.t`; shown is ${stepText(view.step)}` : '';
  const text = [missing && `⚠ ${missing}${still}`, mistake].filter(Boolean).join('. ');
  say('note', text);
  note.className = missing ? 'placeholder' : '';
}

export function done(): void {
  showNote();
  settled();
}
