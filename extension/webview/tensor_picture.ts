// The heat map with its legend and its cursor: what is under it in words, moved by mouse and keys, zoomed.
import * as l10n from '@vscode/l10n';
import type { Plane } from '../src/protocol';
import { count, full, short, shortestFloat32 } from '../src/text';
import { cellsOf, extentOf, indexText, zoomed } from '../src/views/planes';
import { byId, say } from './parts';
import { partText } from './tensor_axes';
import { drawMap, drawRamp, strongest, type Spot } from './tensor_map';

const map = byId<HTMLCanvasElement>('map');
const MOVES: Record<string, [number, number]> = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
const clamp = (n: number, size: number): number => Math.min(size - 1, Math.max(0, n));

/** What the picture asks of the page. */
interface Wishes {
  /** The exact cells of what is drawn in shades. */
  exact(): void;
  zoom(rows: [number, number], columns: [number, number]): void;
  whole(): void;
  /** That element in the table. */
  open(row: number, column: number): void;
}

export class Picture {
  private drawn: { plane: Plane; cells: Float32Array | Float64Array; top: number } | undefined;
  private shape: readonly number[] = [];
  private step: number | undefined;
  private difference = false;
  private spot: Spot = { row: 0, column: 0 };
  private queued = false;
  private reading = false;
  private frames = 0;

  constructor(private readonly wishes: Wishes) {
    map.addEventListener('mousemove', (event) => {
      if (!this.drawn) return;
      const box = map.getBoundingClientRect();
      const at = (part: number, size: number): number => clamp(Math.floor(part * size), size);
      const { height, width } = this.drawn.plane;
      this.spot = {
        row: at((event.clientY - box.top) / box.height, height),
        column: at((event.clientX - box.left) / box.width, width),
      };
      this.tell();
    });
    map.addEventListener('dblclick', () => this.zoom(0.5));
    map.addEventListener('mouseenter', () => this.reads(true));
    map.addEventListener('mouseleave', () => this.reads(document.activeElement === map));
    map.addEventListener('focus', () => this.reads(true));
    map.addEventListener('blur', () => this.reads(map.matches(':hover')));
    map.addEventListener('keydown', (event) => this.key(event));
    byId('in').addEventListener('click', () => this.zoom(0.5));
    byId('out').addEventListener('click', () => this.zoom(2));
    byId('whole').addEventListener('click', () => wishes.whole());
    new ResizeObserver(() => this.paint()).observe(byId('picture'));
  }

  get shown(): boolean {
    return this.drawn !== undefined;
  }

  /** Whether somebody reads single cells: then shades are not enough. */
  get read(): boolean {
    return this.reading;
  }

  private reads(now: boolean): void {
    if (now && !this.reading && this.drawn?.plane.top !== undefined) this.wishes.exact();
    this.reading = now;
    this.paint();
  }

  /** Draws a plane of a tensor of that shape; difference: of two. */
  show(plane: Plane, shape: readonly number[], step: number | undefined, difference: boolean): void {
    const cells = cellsOf(plane);
    this.drawn = { plane, cells, top: plane.top ?? strongest(cells) };
    [this.shape, this.step, this.difference] = [shape, step, difference];
    this.spot = { row: clamp(this.spot.row, plane.height), column: clamp(this.spot.column, plane.width) };
    this.paint();
  }

  themed(): void {
    drawRamp(byId<HTMLCanvasElement>('ramp'));
    this.paint();
  }

  /** With the next frame. The page's body has how many were drawn, and of which step the last one is. */
  paint(): void {
    if (this.queued) return;
    this.queued = true;
    requestAnimationFrame(() => {
      this.queued = false;
      if (!this.drawn || map.hidden) return;
      const { plane, cells, top } = this.drawn;
      fit(plane);
      drawMap(map, plane, cells, top, document.activeElement === map ? this.spot : undefined);
      document.body.dataset['frames'] = String(++this.frames);
      document.body.dataset['step'] = String(this.step ?? '');
      this.legend(plane, top);
      this.tell();
    });
  }

  private legend(plane: Plane, top: number): void {
    const many = plane.cell[0] * plane.cell[1] > 1;
    const part = partText(this.shape, plane.axes, plane.rows, plane.columns);
    const sampled = plane.skip[0] * plane.skip[1] > 1 ? l10n.t`, every ${plane.skip[0]} · ${plane.skip[1]}-th looked at` : '';
    const cells = many ? l10n.t`; a cell is the strongest of ${plane.cell[0]} · ${plane.cell[1]} elements` + sampled : '';
    const text = plane.height && plane.width ? `${part}${cells}` : l10n.t('no elements');
    say('scale', text);
    say('low', top ? short(-top) : '');
    say('high', top ? `+${short(top)}` : '0');
    const what = this.difference ? l10n.t('NaN in one only, or an infinite difference') : l10n.t('NaN or infinite');
    const { bad } = plane;
    say('bad', bad ? l10n.t`⚠ ${what}: ${count(bad.count)} here, first at [${bad.first.join(', ')}]` : '');
  }

  /** The cell under the cursor, for eyes and screen readers. */
  private tell(): void {
    if (!this.drawn) return;
    const { plane, cells } = this.drawn;
    const value = cells[this.spot.row * plane.width + this.spot.column];
    if (value === undefined) return;
    const about = plane.top !== undefined;
    const exact = (): string =>
      !plane.f64 && Number.isFinite(value) ? shortestFloat32(value) : full(Number.isNaN(value) ? 'NaN' : value);
    const text =
      about && !this.reading
        ? ''
        : `${indexText(plane, this.spot.row, this.spot.column)}  ${about ? `≈ ${short(value)}` : exact()}`;
    say('cell', text);
  }

  private zoom(factor: number): void {
    if (!this.drawn) return;
    const { plane } = this.drawn;
    const [r, c] = plane.axes.map((axis) => extentOf(this.shape, axis)) as [number, number];
    const rows = zoomed(plane.rows, r, factor, (this.spot.row + 0.5) / Math.max(1, plane.height));
    this.wishes.zoom(rows, zoomed(plane.columns, c, factor, (this.spot.column + 0.5) / Math.max(1, plane.width)));
  }

  private key(event: KeyboardEvent): void {
    const { drawn, spot } = this;
    if (!drawn || event.ctrlKey || event.metaKey) return;
    const { plane } = drawn;
    const acts: Record<string, () => void> = {
      '+': () => this.zoom(0.5),
      '=': () => this.zoom(0.5),
      '-': () => this.zoom(2),
      '0': () => this.wishes.whole(),
      Enter: () => this.wishes.open(plane.rows[0] + spot.row * plane.cell[0], plane.columns[0] + spot.column * plane.cell[1]),
    };
    const [move, act] = [MOVES[event.key], acts[event.key]];
    if (!move && !act) return;
    event.preventDefault();
    act?.();
    if (!move) return;
    this.spot = { row: clamp(spot.row + move[0], plane.height), column: clamp(spot.column + move[1], plane.width) };
    this.paint();
  }
}

/** As wide as there is room, as high as the plane's own form asks, within reason. */
function fit(plane: Plane): void {
  const room = Math.min(560, Math.max(200, byId('picture').clientWidth));
  const form = plane.height / Math.max(1, plane.width);
  const most = Math.max(240, Math.min(560, innerHeight * 0.6));
  const high = Math.round(Math.min(most, Math.max(room * form, 48)));
  const ratio = devicePixelRatio || 1;
  const size = { width: Math.round(room * ratio), height: Math.round(high * ratio) };
  if (map.width !== size.width || map.height !== size.height) Object.assign(map, size);
  Object.assign(map.style, { width: `${room}px`, height: `${high}px` });
}
