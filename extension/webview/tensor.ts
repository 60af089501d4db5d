// The page of one tensor. It is told { tensor, history, step, lastStats } and asks for slices; it holds no tensor of its own.
import { decode, sliceText } from '../src/views/decode';
import { placeholderReason, type Stats, type Tensor } from '../src/protocol';
import { count, full, num, short, typeText } from '../src/text';

declare function acquireVsCodeApi(): { postMessage(message: unknown): void; getState(): unknown; setState(state: unknown): void };

interface Message {
  tensor: Tensor | { reason: string };
  history: (number | null)[];
  step?: number;
  lastStats?: Stats;
}

const api = acquireVsCodeApi();
const byId = <T extends HTMLElement>(id: string): T => document.getElementById(id) as T;
const colour = (name: string): string => getComputedStyle(document.body).getPropertyValue(`--vscode-${name}`).trim() || '#888';

/** Shape of the whole tensor, the two axes drawn, and the index of every other axis. */
let whole: number[] = [];
let axes: [number, number] = [0, 1];
let indices: number[] = [];
let cells: { values: Float64Array; rows: number; columns: number } | undefined;

window.addEventListener('message', (event: MessageEvent<Message>) => show(event.data));

function show(message: Message): void {
  const { tensor } = message;
  const stats = ('stats' in tensor ? tensor.stats : undefined) ?? message.lastStats;
  if (stats) showStats(stats);
  drawLine(message.history);
  byId('past').textContent = message.step === undefined ? 'History' : `History to step ${count(message.step)}`;
  if (!('shape' in tensor)) {
    byId('note').textContent = tensor.reason;
    return;
  }
  byId('note').textContent =
    placeholderReason(tensor) || (tensor.place ? `made at ${tensor.place.path}:${tensor.place.line}` : '');
  // A slice has the whole's shape with the indexed axes gone: the axes chosen stay those of the whole.
  if (tensor.shape.length >= whole.length || indices.length === 0) setWhole(tensor.shape);
  byId('head').textContent = `${tensor.name ?? ''}  ${typeText(tensor.dtype, whole)}`;
  const values = tensor.data === undefined ? undefined : decode(tensor.data, tensor.dtype);
  if (values) drawMap(values, tensor.shape);
}

function setWhole(shape: number[]): void {
  if (shape.join() === whole.join()) return;
  whole = shape;
  const rank = shape.length;
  axes = [Math.max(0, rank - 2), Math.max(0, rank - 1)];
  indices = shape.map(() => 0);
  const box = byId('axes');
  box.replaceChildren();
  if (rank < 3) return;
  for (const k of [0, 1] as const) {
    const select = document.createElement('select');
    shape.forEach((n, i) => select.add(new Option(`axis ${i} (${n})`, String(i), false, i === axes[k])));
    select.onchange = () => {
      axes[k] = Number(select.value);
      ask();
    };
    box.append(label(k === 0 ? 'rows ' : 'columns ', select));
  }
  shape.forEach((n, i) => {
    const range = Object.assign(document.createElement('input'), { type: 'range', min: '0', max: String(n - 1), value: '0' });
    range.oninput = () => {
      indices[i] = Number(range.value);
      range.title = range.value;
      ask();
    };
    box.append(label(`axis ${i} index `, range));
  });
  ask();
}

function label(text: string, control: HTMLElement): HTMLLabelElement {
  const element = document.createElement('label');
  element.append(text, control);
  return element;
}

const ask = (): void => api.postMessage({ slice: sliceText(whole, axes, indices) });

function showStats(stats: Stats): void {
  const bad = ['nan', 'pos_inf', 'neg_inf'];
  const rows = (['min', 'max', 'mean', 'std', 'zero', 'nan', 'pos_inf', 'neg_inf', 'count'] as const).map((name) => {
    const row = document.createElement('tr');
    const value = Object.assign(document.createElement('td'), {
      textContent: short(stats[name] ?? 0),
      title: full(stats[name] ?? 0),
    });
    if (bad.includes(name) && num(stats[name] ?? 0) > 0) value.className = 'bad';
    row.append(
      Object.assign(document.createElement('th'), {
        textContent: name.replace('pos_inf', '+Inf').replace('neg_inf', '-Inf').replace('nan', 'NaN'),
      }),
      value,
    );
    return row;
  });
  byId('stats').replaceChildren(...rows);
  if (stats.histogram) drawBars(stats.histogram);
}

function context(id: string): { g: CanvasRenderingContext2D; width: number; height: number } | undefined {
  const canvas = byId<HTMLCanvasElement>(id);
  const g = canvas.getContext('2d');
  if (!g) return undefined;
  g.clearRect(0, 0, canvas.width, canvas.height);
  return { g, width: canvas.width, height: canvas.height };
}

function drawBars(bins: readonly number[]): void {
  const c = context('bars');
  const top = Math.max(1, ...bins);
  if (!c) return;
  c.g.fillStyle = colour('charts-blue');
  bins.forEach((n, i) =>
    c.g.fillRect((i * c.width) / bins.length, c.height - (n / top) * c.height, c.width / bins.length - 1, (n / top) * c.height),
  );
}

function drawLine(history: readonly (number | null)[]): void {
  const c = context('line');
  const finite = history.filter((v) => v !== null);
  if (!c || finite.length < 2) return;
  const low = Math.min(...finite);
  const span = Math.max(...finite) - low || 1;
  c.g.strokeStyle = colour('charts-blue');
  c.g.beginPath();
  let open = false;
  history.forEach((v, i) => {
    const x = (i / (history.length - 1)) * c.width;
    if (v === null) {
      open = false;
      c.g.fillStyle = colour('dvm-notFinite');
      c.g.fillRect(x - 1, 0, 2, c.height);
      return;
    }
    const y = c.height - 4 - ((v - low) / span) * (c.height - 8);
    if (open) c.g.lineTo(x, y);
    else c.g.moveTo(x, y);
    open = true;
  });
  c.g.stroke();
}

/** Two colours from the middle outwards: negative blue, positive orange; what is not finite is a hatched cell in the error colour. */
function drawMap(values: Float64Array, shape: readonly number[]): void {
  const columns = shape.at(-1) ?? 1;
  const rows = shape.length < 2 ? 1 : (shape.at(-2) ?? 1);
  cells = { values, rows, columns };
  const c = context('map');
  if (!c || !columns || !rows) return;
  const finite = values.filter(Number.isFinite);
  const top = finite.reduce((m, v) => Math.max(m, Math.abs(v)), 0) || 1;
  const width = c.width / columns;
  const height = c.height / rows;
  const [low, high, bad] = [colour('charts-blue'), colour('charts-orange'), colour('dvm-notFinite')];
  for (let i = 0; i < Math.min(values.length, rows * columns); i++) {
    const v = values[i] ?? NaN;
    const x = (i % columns) * width;
    const y = Math.floor(i / columns) * height;
    c.g.globalAlpha = Number.isFinite(v) ? Math.abs(v) / top : 1;
    c.g.fillStyle = Number.isFinite(v) ? (v < 0 ? low : high) : bad;
    c.g.fillRect(x, y, Math.max(1, width), Math.max(1, height));
  }
  c.g.globalAlpha = 1;
}

byId('map').addEventListener('mousemove', (event) => {
  if (!cells) return;
  const box = byId('map').getBoundingClientRect();
  const column = Math.floor(((event.clientX - box.left) / box.width) * cells.columns);
  const row = Math.floor(((event.clientY - box.top) / box.height) * cells.rows);
  const value = cells.values[row * cells.columns + column];
  byId('cell').textContent = value === undefined ? '' : `[${row}, ${column}]  ${full(Number.isNaN(value) ? 'NaN' : value)}`;
});

api.postMessage({ ready: true });
