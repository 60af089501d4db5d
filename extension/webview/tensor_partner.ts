// What a tensor is compared with: the list to choose from, the tolerance, the difference.
import * as l10n from '@vscode/l10n';
import type { Compared } from '../src/protocol';
import { earlier } from '../src/views/planes';
import type { Partner, Sides } from '../src/views/tensor_messages';
import { byId } from './parts';
import { ask, askDifference } from './tensor_asking';
import { nothingCompared, showCompared } from './tensor_figures';
import { api, page, remember, stepText, valued } from './tensor_state';
import { done } from './tensor_told';
import { picture } from './tensor_window';

/** Asks for the difference, if there is something to compare with now. */
export function compare(): void {
  const other = page.partner && otherOf(page.partner);
  if (other) return askDifference(other, limit('tolerance'), limit('relative'));
  alone();
  done();
}

/** The tensor itself: there is no difference to show. */
export function alone(): void {
  nothingCompared();
  if (page.view?.plane) picture.show(page.view.plane, page.view.shape, page.view.step, false);
}

export function gotDifference(answer: Compared, { step, other, otherStep = stepOfOther() }: Sides): void {
  page.mistake = '';
  showCompared(answer, { step, other, otherStep }, limit('tolerance'), limit('relative'));
  picture.show(answer.plane, page.view?.shape ?? [], step, true);
  done();
}

/** "previous" and "on another device" are snapshots that this page knows. */
function otherOf({ id }: Partner): string | undefined {
  if (id === 'previous') {
    const before = earlier(page.kept, page.view?.step);
    if (!before) page.mistake = l10n.t('There is no earlier step of it yet.');
    return before && `snapshot:${before.snapshot}`;
  }
  if (!id.startsWith('device:')) return id;
  const other = page.kept.filter((k) => k.device === id.slice(7)).at(-1);
  return other && `snapshot:${other.snapshot}`;
}

function stepOfOther(): number | undefined {
  const id = page.partner && otherOf(page.partner);
  return id?.startsWith('snapshot:') ? page.kept.find((k) => k.snapshot === Number(id.slice(9)))?.step : undefined;
}

const limit = (id: string): number => {
  const given = Number(valued(id).value.trim() || '0');
  const good = Number.isFinite(given) && given >= 0;
  valued(id).toggleAttribute('invalid', !good);
  return good ? given : 0;
};

let listed = '';
export function listPartners(): void {
  const { kept, view, extra, state, partner } = page;
  const devices = [...new Set(kept.map((k) => k.device))].filter((d) => d !== view?.device);
  const steps: Partner[] = kept.length
    ? [
        { id: 'previous', label: l10n.t('previous step') },
        ...devices.map((d) => ({ id: `device:${d}`, label: l10n.t`last step on ${d}` })),
      ]
    : [];
  const pinned = extra.filter((p) => !p.id.startsWith('pin'));
  const last = kept.length ? [{ id: 'pin', label: l10n.t('this step, from now on') }] : [];
  const all = [...steps, ...(state?.partners ?? []), ...pinned, ...last, { id: 'ask', label: l10n.t('an expression…') }];
  const key = JSON.stringify(all);
  if (key === listed) return;
  listed = key;
  const options = [{ id: '', label: l10n.t('compare with…') }, ...all].map(({ id, label }) => {
    const option = Object.assign(document.createElement('vscode-option'), { textContent: label });
    option.setAttribute('value', id);
    return option;
  });
  valued('partner').replaceChildren(...options);
  valued('partner').value = partner?.id ?? '';
}

/** One that was asked for in words joins the list. */
export function addPartner(made: Partner): void {
  page.extra = [...page.extra.filter((p) => p.id !== made.id), made];
  choosePartner(made);
}

function choosePartner(next: Partner | undefined): void {
  page.partner = next;
  remember();
  page.mistake = '';
  listPartners();
  valued('partner').value = next?.id ?? '';
  byId('limits').hidden = !next;
  if (!next) nothingCompared();
  ask();
}

valued('partner').addEventListener('change', () => {
  const { view, kept, state } = page;
  const id = valued('partner').value;
  if (id === 'ask') {
    valued('partner').value = page.partner?.id ?? '';
    return api.postMessage({ type: 'partner' });
  }
  const pin = view?.snapshot ?? kept.at(-1)?.snapshot;
  if (id === 'pin' && pin !== undefined) {
    const step = kept.find((k) => k.snapshot === pin)?.step;
    page.extra = [...page.extra.filter((p) => !p.id.startsWith('snapshot:')), { id: `snapshot:${pin}`, label: stepText(step) }];
    return choosePartner(page.extra.at(-1));
  }
  const known = [...(state?.partners ?? []), ...page.extra].find((p) => p.id === id);
  choosePartner(known ?? (id ? { id, label: id } : undefined));
});
for (const id of ['tolerance', 'relative']) byId(id).addEventListener('input', () => page.partner && ask());
byId('limits').hidden = !page.partner;
