// What the adapter's dvm/ requests and events carry. Field names are the wire's.
import * as l10n from '@vscode/l10n';

/** JSON has no NaN or infinity: they come as words. */
export type Num = number | 'NaN' | 'Infinity' | '-Infinity';

export interface Stats {
  count: number;
  finite?: number;
  zero?: number;
  nan?: number;
  pos_inf?: number;
  neg_inf?: number;
  min?: Num;
  max?: Num;
  mean?: Num;
  std?: Num;
  histogram?: number[];
}

export interface Place {
  path: string;
  line: number;
  function?: string;
  backward?: boolean;
}

/** Event dvm/snapshot: statistics or values of a tensor at one step, or why there are none. It belongs to no watch with capture "all". */
export interface Snapshot {
  watchId: number | null;
  name?: string;
  step: number;
  shape: number[];
  dtype: string;
  program?: number;
  instruction?: number;
  backward?: boolean;
  stats?: Stats;
  data?: string;
  /** Number of the snapshot that stays in the program. */
  snapshot?: number;
  placeholder?: boolean | string;
  reason?: string;
}

export interface WatchAnswer {
  watchId: number;
  matched?: { program: number; instruction: number; backward?: boolean }[];
  message?: string;
}

/** Two axes of a tensor, shrunken: each of `height` · `width` cells is the strongest of `cell` elements, NaN if one of them is NaN. */
export interface Plane {
  axes: [number, number];
  indices: number[];
  rows: [number, number];
  columns: [number, number];
  height: number;
  width: number;
  cell: [number, number];
  /** Every n-th row and column was looked at. */
  skip: [number, number];
  f64: boolean;
  /** A cell is a byte, a part of this size of the strongest one: asked for as `shades`. */
  top?: number;
  /** base64 from the adapter; bytes on their way to a page, which are neither encoded nor decoded once more. */
  data: string | Uint8Array;
  /** What is not finite: how many elements, and the index of the first. */
  bad?: { count: number; first: number[] };
}

/** A snapshot that stays in the program. */
export interface Kept {
  snapshot: number;
  step: number;
  device: string;
}

/** Answer of dvm/view. */
export interface TensorView {
  name?: string;
  shape: number[];
  dtype: string;
  device?: string;
  place?: Place;
  bytes?: number;
  placeholder?: boolean | string;
  reason?: string;
  plane?: Plane;
  texts?: string[];
  ref?: number;
  snapshot?: number;
  step?: number;
  kept?: Kept[];
}

/** Answer of dvm/compare: a − b. */
export interface Compared {
  elements: number;
  differ: number;
  over: number;
  mean: Num;
  nan: { a: number; b: number; both: number };
  largest?: { value: Num; index: number[]; a: string; b: string };
  first?: number[];
  plane: Plane;
  dtypes: [string, string];
}

/** Answer of dvm/reload and dvm/undoReload, and event dvm/reload. */
export interface Reload {
  outcome: 'applied' | 'unchanged' | 'refused';
  path?: string;
  step?: number;
  reasons?: string[];
  instructionsPatched?: number;
  instructionsTotal?: number;
  ms?: number;
  changes?: { function?: string; what?: string; old?: unknown; new?: unknown; line?: number }[];
  undone?: boolean;
  /** Accepted, but a call that began before has to end first. */
  pending?: boolean;
}

/** A program that a reload changed, with its instructions before and now. */
export interface ReloadProgram {
  program: number;
  name: string;
  backward: boolean;
  instructionsPatched: number;
  instructionsTotal: number;
  /** False: the former instructions were too many to be kept. */
  listed: boolean;
  before: string[];
  now: string[];
}

/** Answer of dvm/reloadListings. */
export interface ReloadListings {
  path: string;
  step: number;
  programs: ReloadProgram[];
}

export interface Status {
  device?: string;
  /** The device in use when the captured calls that run now have ended. */
  pending?: string | undefined;
  devices?: string[];
  rank?: number | null;
  step?: number;
  programs?: number;
  launches?: number;
  selectorHitRate?: number;
}

export interface ProgramInfo {
  id: number;
  name: string;
  backward?: boolean;
  launches: number;
  instructions: number;
  areas: number;
  file?: string;
  line?: number;
  /** For how many shapes and hooks code is ready. */
  segments?: number;
  inputs?: number;
  /** Of the first inputs that are no parameters: `f32[32…48,64]`, where the first dimension has varied. */
  shapes?: string[];
  /** Nanoseconds of the last launch. */
  ns?: number;
}

/** Whether a captured function gains from the VM, why, and the figures behind it (times in microseconds). */
export interface Advice {
  verdict: string;
  why: string;
  do: string;
  notes: string[];
  figures: {
    launches: number;
    shapes: number;
    hits: number;
    misses: number;
    own_us: number;
    kernels_us: number;
    waiting_us: number;
  };
}

/** Answer of dvm/programs. */
export interface ProgramsAnswer {
  programs: ProgramInfo[];
  advice?: Record<string, Advice>;
}

/** An area of a program: what runs as one, and why it ends where it does. */
export interface AreaInfo {
  index: number;
  kind: string;
  reason: string;
  stack: number[];
  tiles: number;
  tileRows: number;
  tileCols: number;
  ns: number;
  instructions: number;
}

export interface InstructionInfo {
  index: number;
  area: number;
  text: string;
  name: string;
  foldedInto: number;
  file?: string;
  line?: number;
  function?: string;
  backward?: boolean;
  breakpoint?: boolean;
}

export type Level = 'graph' | 'tensor' | 'tile';

export interface ProgramText {
  text: string;
  lineMap?: { line: number; file?: string; sourceLine?: number; instruction?: number; area?: number; backward?: boolean }[];
}

/** A buffer as the Memory View has it. */
export interface MemoryBlock {
  id: number;
  name: string;
  class: string;
  bytes: number;
  born: number;
  /** null while it lives. */
  freed: number | null;
  address: string;
  /** Where it lies on the axis of used addresses, in bytes. */
  low: number;
  reuses: number;
  step: number;
  type: string;
  place?: Place;
  program?: number;
  instruction?: number;
  inPlaceOf?: number;
}

/** Answer of dvm/memoryView. Times are counts of instructions run. */
export interface MemoryViewAnswer {
  whole: [number, number];
  range: [number, number];
  steps: { step: number; from: number; to: number; peak: number }[];
  times: number[];
  classes: string[];
  /** By class, as `times`. */
  bytes: number[][];
  peak: { at: number; bytes: number; contributors: MemoryBlock[]; others: number; otherBytes: number };
  height: number;
  /** The largest of the stretch, at most 2,000. */
  buffers: MemoryBlock[];
  /** All of the stretch. */
  count: number;
  step: number;
  copies: number;
  copiesAvoided: number;
  bytesLive: number;
  bytesPeak: number;
  selected?: MemoryBlock & {
    op: string;
    before: MemoryBlock | null;
    after: MemoryBlock | null;
    operands: MemoryBlock[];
    readers: MemoryBlock[];
    reads: number;
  };
}

export interface Notice {
  text: string;
  path?: string;
  line?: number;
  category?: string;
  /** The watch it is about. */
  watchId?: number;
}

/** Why a tensor has no values to show, or '' if it has. */
export const placeholderReason = (t: { placeholder?: boolean | string; reason?: string }): string =>
  t.placeholder ? t.reason || (typeof t.placeholder === 'string' ? t.placeholder : l10n.t('no values: shape only')) : '';
