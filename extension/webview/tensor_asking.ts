// The questions of a tensor's page, each with a tag that its answer has: which are on their way, and what is asked next.
import { api, lookedAt, MOST, page, shownSnapshot } from './tensor_state';
import { picture } from './tensor_window';

/** A part of the table. */
interface Stretch {
  rows: [number, number];
  columns: [number, number];
}

let newest = 0;
/** The last question that was about another part or step than those before. */
let chosen = 0;
/** Views that are asked for; `newer`: once there is something newer. Many at once, in one message: an answer has a long way, a message its price. */
let views: { tag: number; newer: boolean }[] = [];
const [FEW_AHEAD, MOST_AHEAD] = [5, 10];
/** Choices that may be on their way, while a slider is drawn. */
const MOST_CHOSEN = 3;
let comparing: number | undefined;
let again = false;
const tiles = new Map<number, Stretch>();

/** Asks for what is looked at now: what waited for something newer is of no use any more. Where two are compared, one question at a time. */
export function ask(): void {
  views = views.filter(({ newer }) => !newer);
  again = comparing !== undefined || views.length >= (page.partner ? 1 : MOST_CHOSEN);
  if (again) return;
  askView(false, 1);
  chosen = newest;
}

/** Asks for what comes next, so that it is sent as soon as it is there. */
function follow(): void {
  if (page.snapshot !== undefined || comparing !== undefined) return;
  if (page.partner ? !views.length : views.length <= FEW_AHEAD) askView(true, page.partner ? 1 : MOST_AHEAD - views.length);
}

function askView(newer: boolean, times: number): void {
  const tag = newest + 1;
  while (newest < tag + times - 1) views.push({ tag: ++newest, newer });
  const shades = newer && !page.partner && !picture.read;
  api.postMessage({ type: 'view', tag, window: page.window, newer, times, shades, ...lookedAt() });
}

/** Whether an answer is to a view that is still of use. */
export function viewCame(tag: number): boolean {
  const known = views.some((view) => view.tag === tag);
  views = views.filter((view) => view.tag !== tag);
  return known;
}

/** The difference from another tensor, by its name among the partners. */
export function askDifference(partner: string, tolerance: number, relative: number): void {
  comparing = ++newest;
  const of = page.view?.snapshot ?? page.snapshot;
  const snapshot = of === undefined || page.view?.ref !== undefined ? {} : { snapshot: of };
  const follows = page.snapshot === undefined;
  api.postMessage({ type: 'compare', tag: comparing, window: page.window, follows, partner, tolerance, relative, ...snapshot });
}

export const isComparing = (tag: number): boolean => tag === comparing;

export const askStats = (): void => api.postMessage({ type: 'stats', tag: chosen, ...lookedAt() });

/** Whether statistics that come are of what is shown. */
export const statsFit = (tag: number): boolean => tag === chosen;

/** The values of a stretch of the table, as text. */
export function askTile({ rows, columns }: Stretch): void {
  tiles.set(++newest, { rows, columns });
  api.postMessage({
    type: 'view',
    tag: newest,
    window: { ...page.window, rows, columns, most: MOST },
    texts: true,
    newer: false,
    ...shownSnapshot(),
  });
}

/** The stretch that was asked for with that tag, once. */
export function tileCame(tag: number): Stretch | undefined {
  const tile = tiles.get(tag);
  tiles.delete(tag);
  return tile;
}

/** What was asked for with that tag has failed. */
export function failed(tag: number): 'tile' | 'view' | 'difference' | undefined {
  if (tiles.delete(tag)) return 'tile';
  if (tag === comparing) return 'difference';
  return viewCame(tag) ? 'view' : undefined;
}

/** To be asked once what is on its way has come. */
export const askAfterwards = (): void => void (again = true);

/** An answer has been dealt with: what has waited for it is asked now. */
export function settled(): void {
  comparing = undefined;
  if (again) ask();
  else follow();
}
