// What the adapter's dvm/ requests and events carry. Field names are the wire's.

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
  placeholder?: boolean | string;
  reason?: string;
}

export interface WatchAnswer {
  watchId: number;
  matched?: { program: number; instruction: number; backward?: boolean }[];
  message?: string;
}

/** Answer of dvm/tensor. */
export interface Tensor {
  name?: string;
  shape: number[];
  dtype: string;
  strides?: number[];
  stride?: number[];
  device?: string;
  place?: Place;
  stats?: Stats;
  data?: string;
  placeholder?: boolean | string;
  reason?: string;
  bytes?: number;
  summary?: string;
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
  changes?: { function?: string; what?: string; old?: unknown; new?: unknown }[];
  undone?: boolean;
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
}

export type Level = 'graph' | 'tensor' | 'tile';

export interface ProgramText {
  text: string;
  lineMap?: { line: number; file?: string; sourceLine?: number; instruction?: number; area?: number; backward?: boolean }[];
}

export interface MemoryAnswer {
  html?: string;
  buffers?: MemoryBuffer[];
  peak?: { bytes: number; at?: number; place?: Place | string };
  copies?: number;
  copiesAvoided?: number;
  step?: number;
}

export interface MemoryBuffer {
  id: number;
  name?: string;
  cls?: string;
  class?: string;
  bytes: number;
  born: number;
  /** null or -1 while it lives. */
  freed: number | null;
  address?: number;
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
  t.placeholder ? t.reason || (typeof t.placeholder === 'string' ? t.placeholder : 'no values: shape only') : '';
