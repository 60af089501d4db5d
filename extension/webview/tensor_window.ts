// The part of a tensor that is looked at, as a heat map or as a table.
import { extentOf, defaultAxes } from '../src/views/planes';
import type { Window } from '../src/views/tensor_messages';
import { byId } from './parts';
import { ask, askTile } from './tensor_asking';
import { drawAxes } from './tensor_axes';
import { Picture } from './tensor_picture';
import { MOST, page, remember, valued } from './tensor_state';
import { ValueTable } from './tensor_table';

export const picture = new Picture({
  exact: ask,
  zoom(rows, columns) {
    choose({ ...page.window, rows, columns });
  },
  whole() {
    const { axes, indices } = page.window;
    choose({ ...(axes ? { axes } : {}), ...(indices ? { indices } : {}), most: MOST });
  },
  open(row, column) {
    setMode('table');
    table.goTo(row, column);
  },
});

export function choose(next: Window): void {
  page.window = next;
  remember();
  page.mistake = '';
  if (page.view) drawAxes(page.view.shape, page.window, choose);
  ask();
}

export const table = new ValueTable(byId('table'), (rows, columns) => {
  if (page.mode !== 'table') return table.failed();
  askTile({ rows, columns });
});

export function setMode(next: 'map' | 'table'): void {
  page.mode = next;
  remember();
  valued('mode').value = next;
  for (const id of ['map', 'legend', 'bad', 'cell', 'zoom']) byId(id).hidden = next === 'table';
  for (const id of ['table', 'goto']) byId(id).hidden = next === 'map';
  if (next === 'table') fillTable(false);
  else picture.paint();
}

/** The table of the plane that is chosen. afresh: of another tensor than before. */
export function fillTable(afresh: boolean): void {
  if (!page.view) return;
  const { shape } = page.view;
  const [rows, columns] = page.window.axes ?? defaultAxes(shape.length);
  table.show(extentOf(shape, rows), extentOf(shape, columns), afresh);
}

valued('mode').addEventListener('change', () => setMode(valued('mode').value === 'table' ? 'table' : 'map'));
valued('goto').addEventListener('change', () => {
  const [row, column = 0] = valued('goto')
    .value.split(/[\s,]+/)
    .filter(Boolean)
    .map(Number);
  if (row !== undefined && Number.isInteger(row) && Number.isInteger(column) && row >= 0 && column >= 0) table.goTo(row, column);
});
