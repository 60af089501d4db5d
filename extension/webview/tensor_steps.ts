// The steps of a tensor's page: the history of a statistic, and the slider over those whose values are kept.
import * as l10n from '@vscode/l10n';
import type { Kept } from '../src/protocol';
import { count } from '../src/text';
import { byId, say } from './parts';
import { ask } from './tensor_asking';
import { drawHistory, measureText, MEASURES, onHistoryClick } from './tensor_charts';
import { listPartners } from './tensor_partner';
import { page, valued } from './tensor_state';
import { showNote } from './tensor_told';

const slider = byId<HTMLInputElement>('step');

export function showSteps(): void {
  const { kept, snapshot, state } = page;
  byId('steps').hidden = kept.length < 2;
  byId('past').hidden = kept.length < 2 && (state?.history.steps.length ?? 0) < 2;
  slider.max = String(kept.length);
  const at = snapshot === undefined ? kept.length : kept.findIndex((k) => k.snapshot === snapshot);
  if (document.activeElement !== slider || snapshot === undefined) slider.value = String(at < 0 ? kept.length : at);
  const chosen = snapshot === undefined ? undefined : kept[at];
  const text = chosen ? `${count(chosen.step)} · ${chosen.device}` : l10n.t`now (${kept.length} kept)`;
  say('at', text);
  slider.setAttribute('aria-valuetext', chosen ? l10n.t`step ${text}` : text);
  byId('now').toggleAttribute('disabled', snapshot === undefined);
}

function goToStep(at: Kept | undefined): void {
  page.snapshot = at?.snapshot;
  page.mistake = '';
  showSteps();
  showState();
  ask();
}

/** What the extension has told beside the tensor itself. */
export function showState(): void {
  const { state } = page;
  if (!state) return;
  byId('watch').hidden = state.watched;
  const { steps, stats: samples } = state.history;
  showSteps();
  if (steps.length > 1) drawHistory(byId('line'), steps, samples, valued('measure').value || 'mean', shownStep());
  listPartners();
  showNote();
}

const shownStep = (): number | undefined =>
  page.snapshot === undefined ? undefined : page.kept.find((k) => k.snapshot === page.snapshot)?.step;

slider.addEventListener('input', () => goToStep(page.kept[Number(slider.value)]));
byId('now').addEventListener('click', () => goToStep(undefined));
onHistoryClick(byId('line'), (step) => {
  const near = [...page.kept].sort((a, b) => Math.abs(a.step - step) - Math.abs(b.step - step))[0];
  if (near) goToStep(near);
});

valued('measure').append(
  ...Object.keys(MEASURES).map((name) => {
    const option = Object.assign(document.createElement('vscode-option'), { textContent: measureText(name) });
    option.setAttribute('value', name);
    return option;
  }),
);
valued('measure').addEventListener('change', showState);
