// What a tensor's page knows: the tensor, the part of it that is looked at, the step, what it is compared with.
import * as l10n from '@vscode/l10n';
import type { Kept, Stats, TensorView } from '../src/protocol';
import { count } from '../src/text';
import type { FromTensorPage, PageState, Partner, Window } from '../src/views/tensor_messages';
import { byId } from './parts';

/** What outlives the page's being hidden. */
interface Memory {
  window: Window;
  mode: 'map' | 'table';
  partner: Partner | undefined;
}
declare function acquireVsCodeApi(): {
  postMessage(message: FromTensorPage): void;
  getState(): Memory | undefined;
  setState(state: Memory): void;
};
export const api = acquireVsCodeApi();
export const valued = (id: string): HTMLElement & { value: string } => byId(id);

/** Cells asked for: the map has about two pixels for each. */
export const MOST: [number, number] = [240, 240];

export const remembered = api.getState();

interface Page {
  state: PageState | undefined;
  view: TensorView | undefined;
  window: Window;
  /** A kept step that is looked at; undefined: the tensor as it is now. */
  snapshot: number | undefined;
  kept: Kept[];
  partner: Partner | undefined;
  /** Partners that were chosen here. */
  extra: Partner[];
  mode: 'map' | 'table';
  stats: Stats | undefined;
  /** What went wrong with what the user asked for; stays until the next thing is asked. */
  mistake: string;
}
const partner = remembered?.partner;
export const page: Page = {
  state: undefined,
  view: undefined,
  window: remembered?.window ?? { most: MOST },
  snapshot: undefined,
  kept: [],
  partner,
  extra: partner && /^(snapshot|expression):/.test(partner.id) ? [partner] : [],
  mode: 'map',
  stats: undefined,
  mistake: '',
};

export const remember = (): void => api.setState({ window: page.window, mode: page.mode, partner: page.partner });

/** The step that is looked at, for a request. */
export const lookedAt = (): { snapshot?: number } => (page.snapshot === undefined ? {} : { snapshot: page.snapshot });

/** The snapshot whose values are shown, for a request about just these. */
export function shownSnapshot(): { snapshot?: number } {
  const of = page.view?.ref === undefined ? (page.view?.snapshot ?? page.snapshot) : page.snapshot;
  return of === undefined ? {} : { snapshot: of };
}

export const stepText = (step: number | undefined): string =>
  step === undefined ? l10n.t('another step') : l10n.t`step ${count(step)}`;
