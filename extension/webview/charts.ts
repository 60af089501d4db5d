// The three pictures of a tensor page, on canvases, in the theme's colours.
import type { Plane } from '../src/views/planes';
import { colour } from './look';

function clean(element: HTMLElement): { g: CanvasRenderingContext2D; width: number; height: number } | undefined {
  const canvas = element as HTMLCanvasElement;
  const g = canvas.getContext('2d') ?? undefined;
  g?.clearRect(0, 0, canvas.width, canvas.height);
  return g && { g, width: canvas.width, height: canvas.height };
}

export function drawBars(canvas: HTMLElement, bins: readonly number[]): void {
  const c = clean(canvas);
  if (!c) return;
  const top = Math.max(1, ...bins);
  c.g.fillStyle = colour('charts-blue');
  const width = c.width / bins.length;
  bins.forEach((n, i) => c.g.fillRect(i * width, c.height * (1 - n / top), Math.max(1, width - 1), (n / top) * c.height));
}

/** A line scaled to its own range; a sample that was not finite is a vertical bar. */
export function drawLine(canvas: HTMLElement, history: readonly (number | null)[]): void {
  const c = clean(canvas);
  if (!c) return;
  const finite = history.filter((v) => v !== null);
  const low = Math.min(...finite);
  const span = Math.max(...finite) - low || 1;
  c.g.strokeStyle = colour('charts-blue');
  c.g.fillStyle = colour('dvm-notFinite');
  c.g.beginPath();
  let open = false;
  history.forEach((v, i) => {
    const x = (i / (history.length - 1)) * c.width;
    if (v === null) c.g.fillRect(x - 1, 0, 2, c.height);
    else c.g[open ? 'lineTo' : 'moveTo'](x, c.height - 4 - ((v - low) / span) * (c.height - 8));
    open = v !== null;
  });
  c.g.stroke();
}

/** Colour by sign, strength by size; what is not finite is a cell in the error colour with a cross. Gives the size of the strongest. */
export function drawMap(canvas: HTMLElement, { values, rows, columns }: Plane): number {
  const c = clean(canvas);
  const top = values.reduce((m, v) => (Number.isFinite(v) ? Math.max(m, Math.abs(v)) : m), 0);
  if (!c || !values.length) return top;
  const [width, height] = [c.width / columns, c.height / rows];
  const [low, high, bad] = [colour('charts-blue'), colour('charts-orange'), colour('dvm-notFinite')];
  values.forEach((v, i) => {
    const [x, y] = [(i % columns) * width, Math.floor(i / columns) * height];
    const finite = Number.isFinite(v);
    c.g.globalAlpha = finite ? Math.abs(v) / (top || 1) : 1;
    c.g.fillStyle = finite ? (v < 0 ? low : high) : bad;
    c.g.fillRect(x, y, Math.max(1, width), Math.max(1, height));
    if (!finite && width > 6 && height > 6) cross(c.g, x, y, width, height);
  });
  c.g.globalAlpha = 1;
  return top;
}

function cross(g: CanvasRenderingContext2D, x: number, y: number, width: number, height: number): void {
  g.strokeStyle = colour('editor-background');
  g.beginPath();
  g.moveTo(x, y);
  g.lineTo(x + width, y + height);
  g.moveTo(x + width, y);
  g.lineTo(x, y + height);
  g.stroke();
}
