// A tensor's page: asks for the part that is looked at, draws it, follows the running program, goes back to kept steps, compares.
import * as l10n from '@vscode/l10n';
import './words';
import '@vscode-elements/elements/dist/vscode-button/index.js';
import '@vscode-elements/elements/dist/vscode-option/index.js';
import '@vscode-elements/elements/dist/vscode-single-select/index.js';
import '@vscode-elements/elements/dist/vscode-textfield/index.js';
import type { Kept, Stats, TensorView } from '../src/protocol';
import { placeholderReason } from '../src/protocol';
import { baseName, count, typeText } from '../src/text';
import { defaultAxes, earlier, extentOf, fitted } from '../src/views/planes';
import type { CopyAs, FromTensorPage, PageState, Partner, ToTensorPage, Window } from '../src/views/tensor_messages';
import { onTheme } from './look';
import { byId } from './parts';
import { drawAxes } from './tensor_axes';
import { drawHistogram, drawHistory, measureText, MEASURES, onHistoryClick } from './tensor_charts';
import { showCompared, showStats } from './tensor_figures';
import { Picture } from './tensor_picture';
import { ValueTable } from './tensor_table';

/** What outlives the page's being hidden. */
interface Memory {
  window: Window;
  mode: 'map' | 'table';
  partner: Partner | undefined;
}
declare function acquireVsCodeApi(): {
  postMessage(message: FromTensorPage): void;
  getState(): Memory | undefined;
  setState(state: Memory): void;
};
const api = acquireVsCodeApi();
const valued = (id: string): HTMLElement & { value: string } => byId(id);

/** Cells asked for: the map has about two pixels for each. */
const MOST: [number, number] = [240, 240];
/** Figures and charts follow a running program at a pace that can be read. */
const CALM_MS = 250;

let state: PageState | undefined;
let view: TensorView | undefined;
const remembered = api.getState();
let window_: Window = remembered?.window ?? { most: MOST };
const remember = (): void => api.setState({ window: window_, mode, partner });
/** A kept step that is looked at; undefined: the tensor as it is now. */
let snapshot: number | undefined;
let kept: Kept[] = [];
let partner: Partner | undefined = remembered?.partner;
let extra: Partner[] = partner && /^(snapshot|expression):/.test(partner.id) ? [partner] : [];
let mode: 'map' | 'table' = 'map';
let stats: Stats | undefined;
/** What went wrong with what the user asked for; stays until the next thing is asked. */
let mistake = '';

// ---- asking ----------------------------------------------------------------------------------------------------------------------
let newest = 0;
/** Views that are asked for, oldest first: a few at once, for an answer has a long way and the program goes on meanwhile. */
let views: number[] = [];
const MOST_AHEAD = 3;
let comparing: number | undefined;
let again = false;
const tiles = new Map<number, { rows: [number, number]; columns: [number, number] }>();

/** What is newer by the time of the answers is asked for then. Where two are compared there is one question at a time. */
function ask(): void {
  if (comparing !== undefined || views.length >= (partner ? 1 : MOST_AHEAD)) return void (again = true);
  again = false;
  views.push(++newest);
  api.postMessage({ type: 'view', tag: newest, window: window_, ...(snapshot === undefined ? {} : { snapshot }) });
}

function askDifference(): void {
  const b = partner && otherOf(partner);
  if (!b) {
    alone();
    return done();
  }
  comparing = ++newest;
  const [tolerance, relative] = [limit('tolerance'), limit('relative')];
  const of = view?.snapshot ?? snapshot;
  api.postMessage({
    type: 'compare',
    tag: comparing,
    window: window_,
    partner: b,
    tolerance,
    relative,
    ...(of === undefined || view?.ref !== undefined ? {} : { snapshot: of }),
  });
}

/** The tensor itself: there is no difference to show. */
function alone(): void {
  showCompared(undefined, '', 0, 0);
  if (view?.plane) picture.show(view.plane, view.shape, view.step, false);
}

/** "previous" and "on another device" are snapshots that this page knows. */
function otherOf({ id }: Partner): string | undefined {
  if (id === 'previous') {
    const before = earlier(kept, view?.step);
    if (!before) mistake = l10n.t('There is no earlier step of it yet.');
    return before && `snapshot:${before.snapshot}`;
  }
  if (!id.startsWith('device:')) return id;
  const other = kept.filter((k) => k.device === id.slice(7)).at(-1);
  return other && `snapshot:${other.snapshot}`;
}

const limit = (id: string): number => {
  const given = Number(valued(id).value.trim() || '0');
  const good = Number.isFinite(given) && given >= 0;
  valued(id).toggleAttribute('invalid', !good);
  return good ? given : 0;
};

window.addEventListener('message', ({ data }: MessageEvent<ToTensorPage>) => {
  switch (data.type) {
    case 'state':
      state = data.state;
      return showState();
    case 'stale':
      return snapshot === undefined ? ask() : undefined;
    case 'chosen':
      extra = [...extra.filter((p) => p.id !== data.partner.id), data.partner];
      return choosePartner(data.partner);
    case 'stats':
      return data.tag === newest || quiet() ? gotStats(data.stats) : undefined;
    case 'error':
      return failed(data.tag, data.text);
    case 'view': {
      const tile = tiles.get(data.tag);
      if (tile) {
        tiles.delete(data.tag);
        return table.fill(tile.rows, tile.columns, data.view.texts ?? []);
      }
      if (!views.includes(data.tag)) return;
      views = views.filter((tag) => tag > data.tag); // one that an answer to a later one has overtaken is old
      return gotView(data.view, data.stats);
    }
    case 'compared':
      if (data.tag !== comparing) return;
      mistake = '';
      showCompared(data.answer, data.label || stepText(otherStep()), limit('tolerance'), limit('relative'));
      picture.show(data.answer.plane, view?.shape ?? [], view?.step, true);
      return done();
  }
});

const quiet = (): boolean => !views.length && comparing === undefined;

function done(): void {
  comparing = undefined;
  showNote();
  if (again) ask();
}

function failed(tag: number, text: string): void {
  if (tiles.delete(tag)) return table.failed();
  const compared = tag === comparing;
  if (!compared && !views.includes(tag)) return;
  views = views.filter((other) => other !== tag);
  mistake = text;
  if (compared) alone();
  else if (snapshot !== undefined) {
    snapshot = undefined; // its step is not kept any more
    again = true;
  }
  done();
}

// ---- the tensor ------------------------------------------------------------------------------------------------------------------
function gotView(now: TensorView, its: Stats | undefined): void {
  if (!partner) mistake = '';
  const before = view?.shape;
  view = now;
  kept = now.kept ?? kept;
  const fit = fitted(window_, before ?? (window_.axes ? now.shape : undefined), now.shape);
  const other = before?.join() !== now.shape.join();
  window_ = fit;
  byId('type').textContent = typeText(now.dtype, now.shape);
  showPlace();
  showSteps();
  drawAxes(now.shape, window_, choose);
  if (mode === 'table') fillTable(other);
  if (its) gotStats(its);
  else if (!placeholderReason(now)) askStats();
  if (partner && now.plane) return askDifference();
  if (now.plane) picture.show(now.plane, now.shape, now.step, false);
  done();
}

let statsAsked = 0;
function askStats(): void {
  if (state?.running && Date.now() - statsAsked < CALM_MS) return;
  statsAsked = Date.now();
  api.postMessage({ type: 'stats', tag: newest, ...(snapshot === undefined ? {} : { snapshot }) });
}

let calm: ReturnType<typeof setTimeout> | undefined;
function gotStats(now: Stats): void {
  stats = now;
  calm ??= setTimeout(() => {
    calm = undefined;
    if (!stats) return;
    showStats(stats);
    drawHistogram(byId('bars'), stats);
  }, CALM_MS);
}

function showPlace(): void {
  const place = view?.place;
  const link = byId<HTMLAnchorElement>('place');
  link.hidden = !place;
  if (place) link.textContent = l10n.t`made at ${baseName(place.path)}:${place.line}`;
  byId('when').textContent = [view?.step === undefined ? '' : stepText(view.step), view?.device ?? '']
    .filter(Boolean)
    .join(' · ');
}

const stepText = (step: number | undefined): string =>
  step === undefined ? l10n.t('another step') : l10n.t`step ${count(step)}`;

function otherStep(): number | undefined {
  const id = partner && otherOf(partner);
  return id?.startsWith('snapshot:') ? kept.find((k) => k.snapshot === Number(id.slice(9)))?.step : undefined;
}

/** Why there are no values, in words and in the placeholder's colour; else what went wrong. */
function showNote(): void {
  const missing = snapshot === undefined ? state?.missing || (view ? placeholderReason(view) : '') : '';
  const note = byId('note');
  const still = missing && picture.shown && view?.step !== undefined ? l10n.t`; shown is ${stepText(view.step)}` : '';
  const text = [missing && `⚠ ${missing}${still}`, mistake].filter(Boolean).join('. ');
  if (note.textContent !== text) note.textContent = text;
  note.className = missing ? 'placeholder' : '';
}

// ---- the part that is looked at --------------------------------------------------------------------------------------------------
const picture = new Picture({
  zoom(rows, columns) {
    choose({ ...window_, rows, columns });
  },
  whole() {
    choose({
      ...(window_.axes ? { axes: window_.axes } : {}),
      ...(window_.indices ? { indices: window_.indices } : {}),
      most: MOST,
    });
  },
  open(row, column) {
    setMode('table');
    table.goTo(row, column);
  },
});

function choose(next: Window): void {
  window_ = next;
  remember();
  mistake = '';
  if (view) drawAxes(view.shape, window_, choose);
  ask();
}

// ---- the table -------------------------------------------------------------------------------------------------------------------
const table = new ValueTable(byId('table'), (rows, columns) => {
  if (mode !== 'table') return table.failed();
  tiles.set(++newest, { rows, columns });
  const of = view?.ref === undefined ? (view?.snapshot ?? snapshot) : snapshot;
  api.postMessage({
    type: 'view',
    tag: newest,
    window: { ...window_, rows, columns, most: MOST },
    texts: true,
    ...(of === undefined ? {} : { snapshot: of }),
  });
});

function setMode(next: 'map' | 'table'): void {
  mode = next;
  remember();
  valued('mode').value = next;
  for (const id of ['map', 'legend', 'bad', 'cell', 'zoom']) byId(id).hidden = next === 'table';
  for (const id of ['table', 'goto']) byId(id).hidden = next === 'map';
  if (next === 'table') fillTable(false);
  else picture.paint();
}

/** The table of the plane that is chosen. afresh: of another tensor than before. */
function fillTable(afresh: boolean): void {
  if (!view) return;
  const { shape } = view;
  const [rows, columns] = window_.axes ?? defaultAxes(shape.length);
  table.show(extentOf(shape, rows), extentOf(shape, columns), afresh);
}

valued('goto').addEventListener('change', () => {
  const [row, column = 0] = valued('goto')
    .value.split(/[\s,]+/)
    .filter(Boolean)
    .map(Number);
  if (row !== undefined && Number.isInteger(row) && Number.isInteger(column) && row >= 0 && column >= 0) table.goTo(row, column);
});

// ---- steps and comparison --------------------------------------------------------------------------------------------------------
const slider = byId<HTMLInputElement>('step');

function showSteps(): void {
  byId('steps').hidden = kept.length < 2;
  byId('past').hidden = kept.length < 2 && (state?.history.steps.length ?? 0) < 2;
  slider.max = String(kept.length);
  const at = snapshot === undefined ? kept.length : kept.findIndex((k) => k.snapshot === snapshot);
  if (document.activeElement !== slider || snapshot === undefined) slider.value = String(at < 0 ? kept.length : at);
  const chosen = snapshot === undefined ? undefined : kept[at];
  const text = chosen ? `${count(chosen.step)} · ${chosen.device}` : l10n.t`now (${kept.length} kept)`;
  byId('at').textContent = text;
  slider.setAttribute('aria-valuetext', chosen ? l10n.t`step ${text}` : text);
  byId('now').toggleAttribute('disabled', snapshot === undefined);
}

function goToStep(at: Kept | undefined): void {
  snapshot = at?.snapshot;
  mistake = '';
  showSteps();
  showState();
  ask();
}

slider.addEventListener('input', () => goToStep(kept[Number(slider.value)]));
byId('now').addEventListener('click', () => goToStep(undefined));
onHistoryClick(byId('line'), (step) => {
  const near = [...kept].sort((a, b) => Math.abs(a.step - step) - Math.abs(b.step - step))[0];
  if (near) goToStep(near);
});

let listed = '';
function listPartners(): void {
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

function choosePartner(next: Partner | undefined): void {
  partner = next;
  remember();
  mistake = '';
  listPartners();
  valued('partner').value = next?.id ?? '';
  byId('limits').hidden = !next;
  if (!next) showCompared(undefined, '', 0, 0);
  ask();
}

valued('partner').addEventListener('change', () => {
  const id = valued('partner').value;
  if (id === 'ask') {
    valued('partner').value = partner?.id ?? '';
    return api.postMessage({ type: 'partner' });
  }
  const pin = view?.snapshot ?? kept.at(-1)?.snapshot;
  if (id === 'pin' && pin !== undefined) {
    const step = kept.find((k) => k.snapshot === pin)?.step;
    extra = [...extra.filter((p) => !p.id.startsWith('snapshot:')), { id: `snapshot:${pin}`, label: stepText(step) }];
    return choosePartner(extra.at(-1));
  }
  const known = [...(state?.partners ?? []), ...extra].find((p) => p.id === id);
  choosePartner(known ?? (id ? { id, label: id } : undefined));
});
for (const id of ['tolerance', 'relative']) byId(id).addEventListener('input', () => partner && ask());

// ---- state and tools -------------------------------------------------------------------------------------------------------------
function showState(): void {
  if (!state) return;
  byId('watch').hidden = state.watched;
  const { steps, stats: samples } = state.history;
  showSteps();
  if (steps.length > 1) drawHistory(byId('line'), steps, samples, valued('measure').value || 'mean', shownStep());
  listPartners();
  showNote();
}

const shownStep = (): number | undefined =>
  snapshot === undefined ? undefined : kept.find((k) => k.snapshot === snapshot)?.step;

valued('measure').append(
  ...Object.keys(MEASURES).map((name) => {
    const option = Object.assign(document.createElement('vscode-option'), { textContent: measureText(name) });
    option.setAttribute('value', name);
    return option;
  }),
);
valued('measure').addEventListener('change', showState);
valued('mode').addEventListener('change', () => setMode(valued('mode').value === 'table' ? 'table' : 'map'));
byId('watch').addEventListener('click', () => api.postMessage({ type: 'watch' }));
byId('place').addEventListener('click', (event) => {
  event.preventDefault();
  if (view?.place) api.postMessage({ type: 'goto', path: view.place.path, line: view.place.line });
});
const shownSnapshot = (): { snapshot?: number } => {
  const of = view?.ref === undefined ? (view?.snapshot ?? snapshot) : snapshot;
  return of === undefined ? {} : { snapshot: of };
};
const copy = (as: CopyAs): void => api.postMessage({ type: 'copy', as, window: window_, ...shownSnapshot() });
byId('numpy').addEventListener('click', () => copy('numpy'));
byId('tsv').addEventListener('click', () => copy('tsv'));
byId('npy').addEventListener('click', () => api.postMessage({ type: 'export', ...shownSnapshot() }));

function themed(): void {
  picture.themed();
  showState();
  if (stats) gotStats(stats);
}
onTheme(themed);
themed();
byId('limits').hidden = !partner;
if (remembered?.mode === 'table') setMode('table');
api.postMessage({ type: 'ready' });
