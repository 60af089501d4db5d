// What `dvm dis --json` says of a .msbc file, and what the viewer's page and its panel tell each other. No editor API here.
import * as l10n from '@vscode/l10n';
import { bytes, count } from '../text';

export interface MsbcType {
  dtype: string;
  shape: number[];
}

export interface MsbcInput extends MsbcType {
  value: string;
  name: string;
  class: string;
  constant: boolean;
  strides: number[] | null;
}

export interface MsbcInstruction extends MsbcType {
  value: string;
  op: string;
  /** `ADD(%i0, 0.5)`. */
  text: string;
  name: string;
  /** -1: none. */
  area: number;
  offset: number;
  bytes: number;
  sha256: string;
  file: string;
  /** From 1; 0: unknown. */
  line: number;
  function: string;
  backward: boolean;
}

export interface MsbcArea {
  index: number;
  kind: string;
  instructions: number[];
  tiles: number;
  tileRows: number;
  tileCols: number;
  reason: string;
}

export interface MsbcFacts {
  version: number;
  name: string;
  bytes: number;
  sha256: string;
  functionSha256: string;
  sections: { name: string; bytes: number }[];
  inputs: MsbcInput[];
  inputCount: number;
  outputs: string[];
  areas: MsbcArea[];
  areasRefused: string;
  instructionCount: number;
  /** The first of them. */
  instructions: MsbcInstruction[];
}

/** What can be done about a file that is not shown. */
export type Remedy = 'trust' | 'interpreter' | 'again';

export type ToMsbcPage =
  | { type: 'facts'; facts: MsbcFacts }
  | { type: 'refused'; title: string; text: string; remedies: Remedy[] };
export type FromMsbcPage =
  | { type: 'ready' }
  | { type: 'goto'; path: string; line: number }
  | { type: 'copy'; text: string }
  | { type: 'remedy'; remedy: Remedy };

/** Bytes of an element; those of one byte are not listed. */
const SIZES: Record<string, number> = { float64: 8, int64: 8, float32: 4, int32: 4, float16: 2, bfloat16: 2, int16: 2 };

/** Bytes of a tensor. */
export const sizeOf = ({ dtype, shape }: MsbcType): number => shape.reduce((n, d) => n * d, SIZES[dtype] ?? 1);

/** Name and value of what the head of the page says. */
export function headFacts(f: MsbcFacts): [string, string][] {
  return [
    [l10n.t('program'), f.name || l10n.t('without a name')],
    [l10n.t('instructions'), count(f.instructionCount)],
    [l10n.t('areas'), f.areasRefused ? l10n.t('not known') : count(f.areas.length)],
    [l10n.t('inputs'), count(f.inputCount)],
    [l10n.t('outputs'), f.outputs.length > 6 ? `${f.outputs.slice(0, 6).join(', ')} …` : f.outputs.join(', ')],
    [l10n.t('size'), bytes(f.bytes)],
  ];
}

/** `area 2 · vector`. */
export const areaText = (areas: readonly MsbcArea[], index: number): string => {
  const area = areas[index];
  return area ? `${area.index} · ${area.kind}` : '';
};

/** What went wrong with a run of `dvm dis`, from its last words: the verifier's sentence without the command's name. */
export function saidBy(stderr: string): string | undefined {
  const lines = stderr.split(/\r?\n/).filter((line) => line.startsWith('dvm: '));
  return lines.at(-1)?.slice('dvm: '.length);
}

/** The facts that `dvm dis --json` has printed; undefined where it is anything else, as when something at Python's start prints as well. */
export function factsIn(stdout: string): MsbcFacts | undefined {
  try {
    const found = JSON.parse(stdout) as MsbcFacts | null;
    return Array.isArray(found?.instructions) ? found : undefined;
  } catch {
    return undefined;
  }
}
