// The page of one tensor: shows what it is sent, asks for another plane of a tensor too large to be sent whole.
import './words';
import * as l10n from '@vscode/l10n';
import type { Stats } from '../src/protocol';
import { placeholderReason } from '../src/protocol';
import { count, full, num, short, shortestFloat32, typeText } from '../src/text';
import { decode } from '../src/views/decode';
import { defaultAxes, planeOf, sizeOf, sliceText, type Plane } from '../src/views/planes';
import type { TensorMessage } from '../src/views/tensor';
import { drawBars, drawLine, drawMap } from './charts';

declare function acquireVsCodeApi(): { postMessage(message: unknown): void };
const api = acquireVsCodeApi();
const byId = <T extends HTMLElement>(id: string): T => document.getElementById(id) as T;

/** The tensor as last sent: its shape, and its values if they are all there. */
let shape: number[] | undefined;
let whole: Float64Array | undefined;
let axes: [number, number] = [-1, -1];
let indices: number[] = [];
let plane: Plane | undefined;
let cell = { row: 0, column: 0 };

window.addEventListener('message', (event: MessageEvent<TensorMessage>) => show(event.data));

function show({ tensor, slice, reason, history, step, lastStats }: TensorMessage): void {
  const stats = tensor?.stats ?? lastStats;
  if (stats && !slice) showStats(stats);
  byId('past').hidden = history.length < 2;
  if (history.length > 1) drawLine(byId('line'), history);
  byId('pastTitle').textContent = step === undefined ? l10n.t('History') : l10n.t`History to step ${count(step)}`;
  if (reason) byId('note').textContent = reason;
  if (!tensor) return;
  const made = tensor.place ? l10n.t`made at ${tensor.place.path.split(/[\\/]/).at(-1) ?? ''}:${tensor.place.line}` : '';
  byId('note').textContent = placeholderReason(tensor) || made;
  const values = tensor.data === undefined ? undefined : decode(tensor.data, tensor.dtype);
  if (slice) {
    if (values) showPlane(planeOf(values, tensor.shape, defaultAxes(tensor.shape.length), []));
    return;
  }
  if (shape?.join() !== tensor.shape.join()) newShape(tensor.shape);
  byId('head').textContent = [tensor.name, typeText(tensor.dtype, tensor.shape)].filter(Boolean).join('   ');
  whole = values && values.length === sizeOf(tensor.shape) ? values : undefined;
  if (values) choosePlane();
}

/** Another shape: of the same rank (a batch of another size) what was chosen stays; else the last two axes, the first index of the others. */
function newShape(now: number[]): void {
  const sameRank = shape?.length === now.length;
  shape = now;
  axes = sameRank ? axes : defaultAxes(now.length);
  indices = now.map((n, i) => (sameRank ? Math.min(indices[i] ?? 0, Math.max(0, n - 1)) : 0));
  drawControls();
}

function drawControls(): void {
  const box = byId('axes');
  box.replaceChildren();
  const now = shape ?? [];
  if (now.length < 3) return;
  (['rows', 'columns'] as const).forEach((what, k) => {
    const select = document.createElement('select');
    now.forEach((n, i) => select.add(new Option(l10n.t`axis ${i} (${n})`, String(i), false, i === axes[k])));
    select.onchange = () => {
      const chosen = Number(select.value);
      // Two axes are drawn: choosing the other one's exchanges them.
      if (axes[1 - k] === chosen) axes[(1 - k) as 0 | 1] = axes[k as 0 | 1];
      axes[k as 0 | 1] = chosen;
      drawControls();
      choosePlane();
    };
    box.append(labelled(what === 'rows' ? l10n.t('rows') : l10n.t('columns'), select));
  });
  now.forEach((n, i) => {
    if (axes.includes(i) || n < 2) return;
    const range = Object.assign(document.createElement('input'), {
      type: 'range',
      min: '0',
      max: String(n - 1),
      value: String(indices[i]),
    });
    const text = document.createElement('span');
    const write = (): string => (text.textContent = ` ${l10n.t`${range.value} of ${n}`}`);
    write();
    range.oninput = () => {
      indices[i] = Number(range.value);
      write();
      choosePlane();
    };
    const label = labelled(l10n.t`axis ${i}`, range);
    label.append(text);
    box.append(label);
  });
}

function labelled(text: string, control: HTMLElement): HTMLLabelElement {
  const label = document.createElement('label');
  label.append(`${text} `, control);
  return label;
}

function choosePlane(): void {
  if (!shape) return;
  if (whole) showPlane(planeOf(whole, shape, axes, indices));
  else api.postMessage({ slice: sliceText(shape, [...axes].sort(), indices) });
}

function showPlane(p: Plane): void {
  plane = p;
  const top = drawMap(byId('map'), p);
  byId('scale').textContent = p.values.length
    ? l10n.t`${p.rows} × ${p.columns}; blue negative, orange positive, strongest at ±${short(top)}`
    : l10n.t('no elements');
  showCell();
}

const WORDS: Partial<Record<keyof Stats, string>> = {
  zero: l10n.t('zeros'),
  nan: 'NaN',
  pos_inf: '+Inf',
  neg_inf: '-Inf',
  count: l10n.t('elements'),
};

function showStats(stats: Stats): void {
  const names = ['min', 'max', 'mean', 'std', 'zero', 'nan', 'pos_inf', 'neg_inf', 'count'] as const;
  const rows = names.map((name) => {
    const value = stats[name] ?? (name in WORDS ? 0 : 'NaN');
    const row = document.createElement('tr');
    const data = Object.assign(document.createElement('td'), { textContent: short(value), title: full(value) });
    if (['nan', 'pos_inf', 'neg_inf'].includes(name) && num(value) > 0) data.className = 'bad';
    row.append(Object.assign(document.createElement('th'), { textContent: WORDS[name] ?? name }), data);
    return row;
  });
  byId('stats').replaceChildren(...rows);
  if (stats.histogram) drawBars(byId('bars'), stats.histogram);
}

function showCell(): void {
  const value = plane?.values[cell.row * plane.columns + cell.column];
  const digits = (v: number): string =>
    Number.isFinite(v) && Math.fround(v) === v ? shortestFloat32(v) : full(Number.isNaN(v) ? 'NaN' : v);
  byId('cell').textContent = value === undefined ? '' : `[${cell.row}, ${cell.column}]  ${digits(value)}`;
}

byId('map').addEventListener('mousemove', (event) => {
  if (!plane) return;
  const box = byId('map').getBoundingClientRect();
  const at = (part: number, size: number): number => Math.min(size - 1, Math.max(0, Math.floor(part * size)));
  cell = {
    row: at((event.clientY - box.top) / box.height, plane.rows),
    column: at((event.clientX - box.left) / box.width, plane.columns),
  };
  showCell();
});

const MOVES: Record<string, [number, number]> = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
byId('map').addEventListener('keydown', (event) => {
  const move = MOVES[event.key];
  if (!move || !plane) return;
  event.preventDefault();
  const clamp = (n: number, size: number): number => Math.min(size - 1, Math.max(0, n));
  cell = { row: clamp(cell.row + move[0], plane.rows), column: clamp(cell.column + move[1], plane.columns) };
  showCell();
});

api.postMessage({ ready: true });
