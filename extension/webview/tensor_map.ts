// The heat map on a canvas, in the theme's colours: one image, where a chart would lay out each of 57,600 cells at each frame.
import type { Plane } from '../src/protocol';
import { colour, onTheme } from './look';

type Rgb = [number, number, number];

const SHADES = 255;
/** Cells smaller than this (in device pixels) have their mark drawn larger than they are. */
const MARK = 8;
const MOST_MARKS = 400;

let shades: Uint32Array | undefined;
onTheme(() => (shades = undefined));

/** A colour of the theme over the editor's ground, as numbers. */
function rgb(names: string[], over?: Rgb): Rgb {
  const g = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  if (!g) return [0, 0, 0];
  if (over) {
    g.fillStyle = `rgb(${over.join()})`;
    g.fillRect(0, 0, 1, 1);
  }
  g.fillStyle = names.map((name) => colour(name, '')).find(Boolean) ?? '#888';
  g.fillRect(0, 0, 1, 1);
  const [r = 0, green = 0, b = 0] = g.getImageData(0, 0, 1, 1).data;
  return [r, green, b];
}

const packed = ([r, g, b]: Rgb): number => (255 << 24) | (b << 16) | (g << 8) | r;
const mixed = (a: Rgb, b: Rgb, part: number): Rgb => a.map((x, i) => Math.round(x + ((b[i] ?? 0) - x) * part)) as Rgb;

/** From strongest negative over 0 (the editor's ground) to strongest positive; then what is not finite. */
function palette(): Uint32Array {
  if (shades) return shades;
  const ground = rgb(['editor-background']);
  const [low, high, bad] = [
    rgb(['charts-blue'], ground),
    rgb(['dvm-positive', 'charts-orange'], ground),
    rgb(['dvm-notFinite'], ground),
  ];
  shades = new Uint32Array(2 * SHADES + 2);
  for (let i = -SHADES; i <= SHADES; i++) shades[i + SHADES] = packed(mixed(ground, i < 0 ? low : high, Math.abs(i) / SHADES));
  shades[2 * SHADES + 1] = packed(bad);
  return shades;
}

/** The size of the strongest finite cell. */
export function strongest(cells: Float32Array | Float64Array): number {
  let top = 0;
  for (const v of cells) {
    const size = Math.abs(v);
    if (size > top && size < Infinity) top = size;
  }
  return top;
}

const small = document.createElement('canvas');

export interface Spot {
  row: number;
  column: number;
}

/** Draws cells over the whole canvas; `spot` has a frame. What is not finite has its colour and a sign: × NaN, + or − infinity. */
export function drawMap(
  canvas: HTMLCanvasElement,
  plane: Plane,
  cells: Float32Array | Float64Array,
  top: number,
  spot?: Spot,
): void {
  const g = canvas.getContext('2d');
  const { width, height } = plane;
  if (!g) return;
  g.clearRect(0, 0, canvas.width, canvas.height);
  if (!width || !height) return;
  const colours = palette();
  const image = new ImageData(width, height);
  const pixels = new Uint32Array(image.data.buffer);
  const bad: number[] = [];
  const scale = top ? SHADES / top : 0;
  for (let i = 0; i < cells.length; i++) {
    const v = cells[i] ?? NaN;
    const finite = v - v === 0;
    if (!finite && bad.length < MOST_MARKS) bad.push(i);
    pixels[i] = finite ? (colours[Math.round(v * scale) + SHADES] ?? 0) : (colours[2 * SHADES + 1] ?? 0);
  }
  if (small.width !== width || small.height !== height) Object.assign(small, { width, height });
  small.getContext('2d')?.putImageData(image, 0, 0);
  g.imageSmoothingEnabled = false;
  g.drawImage(small, 0, 0, canvas.width, canvas.height);
  const [w, h] = [canvas.width / width, canvas.height / height];
  for (const i of bad) mark(g, (i % width) * w, Math.floor(i / width) * h, w, h, cells[i] ?? NaN);
  if (spot) frame(g, spot.column * w, spot.row * h, w, h);
}

function mark(g: CanvasRenderingContext2D, left: number, top: number, width: number, height: number, value: number): void {
  const size = Math.max(MARK, Math.min(width, height, 24));
  const [x, y] = [left + width / 2, top + height / 2];
  if (width < MARK || height < MARK) {
    g.fillStyle = colour('dvm-notFinite');
    g.fillRect(x - size / 2, y - size / 2, size, size);
  }
  const arm = size / 2 - 2;
  g.strokeStyle = colour('editor-background');
  g.lineWidth = Math.max(1, size / 8);
  g.beginPath();
  if (Number.isNaN(value)) {
    g.moveTo(x - arm, y - arm);
    g.lineTo(x + arm, y + arm);
    g.moveTo(x + arm, y - arm);
    g.lineTo(x - arm, y + arm);
  } else {
    g.moveTo(x - arm, y);
    g.lineTo(x + arm, y);
    if (value > 0) {
      g.moveTo(x, y - arm);
      g.lineTo(x, y + arm);
    }
  }
  g.stroke();
}

/** Two lines, dark and light: one of them is seen on any colour. */
function frame(g: CanvasRenderingContext2D, x: number, y: number, width: number, height: number): void {
  const [w, h] = [Math.max(5, width), Math.max(5, height)];
  for (const [name, out] of [
    ['editor-background', 2],
    ['foreground', 0],
  ] as const) {
    g.strokeStyle = colour(name);
    g.lineWidth = 2;
    g.strokeRect(x - out + (width - w) / 2, y - out + (height - h) / 2, w + 2 * out, h + 2 * out);
  }
}

/** The colours between the strongest negative and positive, for the legend. */
export function drawRamp(canvas: HTMLCanvasElement): void {
  const g = canvas.getContext('2d');
  if (!g) return;
  const colours = palette();
  const image = new ImageData(2 * SHADES + 1, 1);
  new Uint32Array(image.data.buffer).set(colours.subarray(0, 2 * SHADES + 1));
  Object.assign(small, { width: 2 * SHADES + 1, height: 1 });
  small.getContext('2d')?.putImageData(image, 0, 0);
  g.drawImage(small, 0, 0, canvas.width, canvas.height);
}
