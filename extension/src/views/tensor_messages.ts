// What a tensor's page and the extension tell each other. No editor API here: both sides use it.
import type { Compared, Stats, TensorView } from '../protocol';

/** A part of two axes, as dvm/view takes it. */
export interface Window {
  axes?: [number, number];
  indices?: number[];
  rows?: [number, number];
  columns?: [number, number];
  most: [number, number];
}

/** From the page. `tag`: of the request, given back with the answer; `snapshot`: one of an earlier step; `newer`: to be answered once there is
    something newer than the answers so far; a request that is not has those that wait forgotten; `shades`: while the program runs, cells that
    are exact enough to be drawn; `times`: as many requests, with the tags from this one on. */
export type FromTensorPage =
  | { type: 'ready' }
  | {
      type: 'view';
      tag: number;
      window: Window;
      newer: boolean;
      times?: number;
      shades?: boolean;
      snapshot?: number;
      texts?: boolean;
    }
  | { type: 'stats'; tag: number; snapshot?: number }
  | {
      type: 'compare';
      tag: number;
      window: Window;
      snapshot?: number;
      /** The step was not chosen: where the other has not kept it, the newest that both have is compared. */
      follows: boolean;
      partner: string;
      tolerance: number;
      relative: number;
    }
  | { type: 'copy'; as: CopyAs; window: Window; snapshot?: number }
  | { type: 'export'; snapshot?: number }
  | { type: 'goto'; path: string; line: number }
  | { type: 'partner' }
  | { type: 'watch' };

export type CopyAs = 'numpy' | 'tsv';

/** Something to compare with. */
export interface Partner {
  id: string;
  label: string;
}

/** What was compared: the step of the tensor itself, the other's name and its step, where they are known. */
export interface Sides {
  step?: number | undefined;
  other: string;
  otherStep?: number | undefined;
}

/** To the page. */
export type ToTensorPage =
  | { type: 'state'; state: PageState }
  | { type: 'view'; tag: number; view: TensorView; stats?: Stats }
  | { type: 'stats'; tag: number; stats: Stats }
  | { type: 'compared'; tag: number; answer: Compared; sides: Sides }
  | { type: 'error'; tag: number; text: string }
  | { type: 'chosen'; partner: Partner };

/** What the page shows beside the tensor itself. */
export interface PageState {
  watched: boolean;
  running: boolean;
  /** Statistics by step, without histograms. */
  history: { steps: number[]; stats: Stats[] };
  partners: Partner[];
  /** Why the newest snapshot has no values. */
  missing: string;
}
