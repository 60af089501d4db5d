// A tensor's page: asks for the part that is looked at, draws it, follows the running program, goes back to kept steps, compares.
import './words';
import '@vscode-elements/elements/dist/vscode-button/index.js';
import '@vscode-elements/elements/dist/vscode-option/index.js';
import '@vscode-elements/elements/dist/vscode-single-select/index.js';
import '@vscode-elements/elements/dist/vscode-textfield/index.js';
import type { Stats, TensorView } from '../src/protocol';
import { placeholderReason } from '../src/protocol';
import { typeText } from '../src/text';
import { fitted } from '../src/views/planes';
import type { CopyAs, ToTensorPage } from '../src/views/tensor_messages';
import { onTheme } from './look';
import { byId, say } from './parts';
import { ask, askAfterwards, failed, isComparing, statsFit, tileCame, viewCame } from './tensor_asking';
import { drawAxes } from './tensor_axes';
import { addPartner, alone, compare, gotDifference } from './tensor_partner';
import { api, page, remembered, shownSnapshot } from './tensor_state';
import { showState, showSteps } from './tensor_steps';
import { askStatsCalmly, done, gotStats, showPlace } from './tensor_told';
import { choose, fillTable, picture, setMode, table } from './tensor_window';

window.addEventListener('message', ({ data }: MessageEvent<ToTensorPage>) => {
  switch (data.type) {
    case 'state':
      page.state = data.state;
      return showState();
    case 'chosen':
      return addPartner(data.partner);
    case 'stats':
      return statsFit(data.tag) ? gotStats(data.stats) : undefined;
    case 'error':
      return refused(data.tag, data.text);
    case 'view': {
      const tile = tileCame(data.tag);
      if (tile) return table.fill(tile.rows, tile.columns, data.view.texts ?? []);
      return viewCame(data.tag) ? gotView(data.view, data.stats) : undefined;
    }
    case 'compared':
      return isComparing(data.tag) ? gotDifference(data.answer, data.sides) : undefined;
  }
});

function gotView(now: TensorView, its: Stats | undefined): void {
  if (!page.partner) page.mistake = '';
  const before = page.view?.shape;
  page.view = now;
  page.kept = now.kept ?? page.kept;
  page.window = fitted(page.window, before ?? (page.window.axes ? now.shape : undefined), now.shape);
  say('type', typeText(now.dtype, now.shape));
  showPlace();
  showSteps();
  drawAxes(now.shape, page.window, choose);
  if (page.mode === 'table') fillTable(before?.join() !== now.shape.join());
  if (its) gotStats(its);
  else if (!placeholderReason(now)) askStatsCalmly();
  if (page.partner && now.plane) return compare();
  if (now.plane) picture.show(now.plane, now.shape, now.step, false);
  done();
}

function refused(tag: number, text: string): void {
  const what = failed(tag);
  if (what === 'tile') return table.failed();
  if (!what) return;
  page.mistake = text;
  if (what === 'difference') alone();
  else if (page.snapshot !== undefined) {
    page.snapshot = undefined; // its step is not kept any more
    askAfterwards();
  }
  done();
}

// ---- tools -----------------------------------------------------------------------------------------------------------------------
byId('watch').addEventListener('click', () => api.postMessage({ type: 'watch' }));
byId('place').addEventListener('click', (event) => {
  event.preventDefault();
  const place = page.view?.place;
  if (place) api.postMessage({ type: 'goto', path: place.path, line: place.line });
});
const copy = (as: CopyAs): void => api.postMessage({ type: 'copy', as, window: page.window, ...shownSnapshot() });
byId('numpy').addEventListener('click', () => copy('numpy'));
byId('tsv').addEventListener('click', () => copy('tsv'));
byId('npy').addEventListener('click', () => api.postMessage({ type: 'export', ...shownSnapshot() }));

function themed(): void {
  picture.themed();
  showState();
  if (page.stats) gotStats(page.stats);
}
onTheme(themed);
themed();
if (remembered?.mode === 'table') setMode('table');
api.postMessage({ type: 'ready' });
ask();
