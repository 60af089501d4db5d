// The Memory View's page: asks for the stretch that is looked at, draws it, and tells about the buffer that is chosen.
import './words';
import * as l10n from '@vscode/l10n';
import '@vscode-elements/elements/dist/vscode-button/index.js';
import '@vscode-elements/elements/dist/vscode-option/index.js';
import '@vscode-elements/elements/dist/vscode-single-select/index.js';
import type { CellComponent } from 'tabulator-tables';
import type { MemoryBlock, MemoryViewAnswer } from '../src/protocol';
import { baseName, bytes, count } from '../src/text';
import type { FromMemoryPage, ToMemoryPage } from '../src/views/memory';
import { classColour, className, onTheme } from './look';
import { echarts, option, picture, totals, type Drawn, type Mode } from './memory_chart';
import { byId, definitions, fact, link } from './parts';
import { rowTable } from './row_table';

declare function acquireVsCodeApi(): { postMessage(message: FromMemoryPage): void };
const api = acquireVsCodeApi();
const select = (id: string): HTMLElement & { value: string } => byId(id);

let view: MemoryViewAnswer | undefined;
let whole: MemoryViewAnswer | undefined;
let mode: Mode = 'time';
let chosen: number | undefined;
let other: Drawn['other'];
let newest = 0;
const waiting = new Map<number, 'view' | 'compare'>();

const chart = echarts.init(byId('chart'));
// ---- asking ------------------------------------------------------------------------------------------------------------------
function ask(range: Partial<{ from: number; to: number; fresh: boolean }>, what: 'view' | 'compare' = 'view'): void {
  waiting.set(++newest, what);
  api.postMessage({
    type: 'view',
    ...range,
    ...(chosen !== undefined && what === 'view' ? { select: chosen } : {}),
    tag: newest,
  });
}

const again = (): void => ask(view ? { from: view.range[0], to: view.range[1] } : {});

window.addEventListener('message', ({ data }: MessageEvent<ToMemoryPage>) => {
  if (data.type === 'stale') return refresh();
  const what = waiting.get(data.tag);
  waiting.delete(data.tag);
  if (data.type === 'error') {
    byId('facts').textContent = data.text;
    if (chosen !== undefined) {
      chosen = undefined; // a buffer the log has forgotten
      again();
    }
    return;
  }
  if (what === 'compare') return compared(data.answer);
  if ([...waiting.values()].includes('view')) return; // a newer answer is on its way
  const { answer } = data;
  view = answer;
  if (!whole || (answer.range[0] === answer.whole[0] && answer.range[1] === answer.whole[1])) whole = answer;
  show();
});

/** Nothing is compared any more, and the list says so. */
function alone(): void {
  other = undefined;
  select('compare').value = '';
}

/** The log anew: the stretch and the chosen buffer stay if they are still there. */
function refresh(): void {
  alone();
  const all = !view || (view.range[0] === view.whole[0] && view.range[1] === view.whole[1]);
  whole = undefined;
  ask({ ...(view && !all ? { from: view.range[0], to: view.range[1] } : {}), fresh: true });
}

// ---- showing -----------------------------------------------------------------------------------------------------------------
function show(): void {
  if (!view || !whole) return;
  facts(view);
  steps(view);
  draw();
  tell(view.selected);
  byId('which').textContent = countText(view);
  void fill(view.buffers);
}

/** How many buffers the table has, of which stretch. */
function countText({ range, whole: log, count: all, buffers }: MemoryViewAnswer): string {
  const everything = range[0] === log[0] && range[1] === log[1];
  const [shown, total] = [count(buffers.length), count(all)];
  if (all > buffers.length)
    return everything
      ? l10n.t`The ${shown} largest of the whole log, of ${total} buffers`
      : l10n.t`The ${shown} largest of this stretch, of ${total} buffers`;
  return everything ? l10n.t`${total} buffers of the whole log` : l10n.t`${total} buffers of this stretch`;
}

function draw(): void {
  if (!view || !whole) return;
  chart.setOption(option({ view, whole, mode, other }), { notMerge: true });
  byId('chart').setAttribute(
    'aria-label',
    l10n.t`Memory over time: at most ${bytes(view.peak.bytes)}, ${count(view.count)} buffers. The table below has them.`,
  );
}

function facts(now: MemoryViewAnswer): void {
  const peak = now.peak.contributors[0];
  const told: [string, string, (() => void) | undefined][] = [
    [l10n.t('step'), count(now.step), undefined],
    [l10n.t('peak'), bytes(now.peak.bytes), undefined],
    [l10n.t('largest then'), peak ? `${peak.name}, ${bytes(peak.bytes)}` : '', peak && (() => choose(peak.id))],
    [l10n.t('alive now'), bytes(now.bytesLive), undefined],
    [l10n.t('buffers'), count(now.count), undefined],
    [l10n.t('copies'), l10n.t`${count(now.copies)}, ${count(now.copiesAvoided)} avoided`, undefined],
  ];
  byId('facts').replaceChildren(...told.filter(([, value]) => value).map(([name, value, go]) => fact(name, value, go)));
}

// ---- steps -------------------------------------------------------------------------------------------------------------------
let listed = '';
function steps(now: MemoryViewAnswer): void {
  const key = now.steps.map((s) => s.step).join();
  if (key !== listed) {
    listed = key;
    const options = (first: string): string =>
      `<vscode-option value="">${first}</vscode-option>` +
      [...now.steps]
        .reverse()
        .map((s) => `<vscode-option value="${s.step}">${l10n.t`step ${count(s.step)}, peak ${bytes(s.peak)}`}</vscode-option>`)
        .join('');
    select('step').innerHTML = options(l10n.t('all steps'));
    select('compare').innerHTML = options(l10n.t('compare with…'));
  }
  const shown = now.steps.find((s) => s.from === now.range[0] && s.to === now.range[1]);
  select('step').value = shown ? String(shown.step) : '';
}

function compared(answer: MemoryViewAnswer): void {
  if (!view) return;
  const step = answer.steps.find((s) => s.from === answer.range[0]);
  const shift = view.range[0] - answer.range[0];
  other = { name: l10n.t`step ${count(step?.step ?? 0)}`, points: totals(answer).map(([t, n]) => [t + shift, n]) };
  draw();
}

// ---- the table ---------------------------------------------------------------------------------------------------------------
const columns = [
  { title: l10n.t('name'), field: 'name', widthGrow: 2 },
  { title: l10n.t('type'), field: 'type', widthGrow: 2 },
  {
    title: l10n.t('class'),
    field: 'class',
    minWidth: 110,
    formatter: (cell: CellComponent) => classCell(String(cell.getValue())),
  },
  {
    title: l10n.t('bytes'),
    field: 'bytes',
    sorter: 'number' as const,
    minWidth: 95,
    hozAlign: 'right' as const,
    formatter: (cell: CellComponent) => bytes(Number(cell.getValue())),
  },
  {
    title: l10n.t('born'),
    field: 'born',
    sorter: 'number' as const,
    minWidth: 80,
    hozAlign: 'right' as const,
    formatter: (cell: CellComponent) => count(Number(cell.getValue())),
  },
  {
    title: l10n.t('freed'),
    field: 'freed',
    sorter: 'number' as const,
    minWidth: 80,
    hozAlign: 'right' as const,
    formatter: (cell: CellComponent) => ended(cell.getValue() as number | null),
  },
  { title: l10n.t('made at'), field: 'at', widthGrow: 2 },
  { title: l10n.t('reuses'), field: 'reuses', sorter: 'number' as const, minWidth: 95, hozAlign: 'right' as const },
];
const ended = (freed: number | null): string => (freed === null ? l10n.t('lives') : count(freed));
type Row = MemoryBlock & { at: string };
const rowOf = (b: MemoryBlock): Row => ({ ...b, at: b.place ? `${baseName(b.place.path)}:${b.place.line}` : '' });
let newestRows: MemoryBlock[] = [];
const { table, built } = rowTable<Row>(
  {
    height: '34vh',
    columns,
    placeholder: l10n.t('No buffers were recorded yet: run some steps, then refresh.'),
    initialSort: [{ column: 'bytes', dir: 'desc' }],
  },
  (row) => choose(row.id),
);

async function fill(rows: MemoryBlock[]): Promise<void> {
  newestRows = rows;
  await built;
  if (newestRows !== rows) return; // others have come meanwhile
  await table.replaceData(rows.map(rowOf));
  table.deselectRow();
  if (chosen !== undefined && rows.some((r) => r.id === chosen)) table.selectRow(chosen);
}

function classCell(name: string): HTMLElement {
  const cell = document.createElement('span');
  const swatch = document.createElement('i');
  swatch.className = 'swatch';
  swatch.style.background = classColour(name);
  cell.append(swatch, className(name));
  return cell;
}

// ---- the chosen buffer -------------------------------------------------------------------------------------------------------
function choose(id: number): void {
  chosen = id;
  again();
}

function tell(b: MemoryViewAnswer['selected']): void {
  const box = byId('selected');
  box.replaceChildren();
  if (!b) {
    const hint = document.createElement('p');
    hint.className = 'soft';
    hint.textContent = l10n.t('Choose a buffer: what made it, who reads it, who has its memory next.');
    box.append(hint);
    return;
  }
  const title = document.createElement('h2');
  title.textContent = `${b.name} ${b.type}`;
  const { list, add } = definitions();
  const buffer = (x: MemoryBlock): HTMLElement => link(`${x.name} ${x.type} (${bytes(x.bytes)})`, () => choose(x.id));
  const { place, program, instruction } = b;
  add(l10n.t('size'), l10n.t`${bytes(b.bytes)} (${count(b.bytes)} bytes), ${className(b.class)}`);
  add(
    l10n.t('made at'),
    place
      ? link(`${baseName(place.path)}:${place.line}`, () => api.postMessage({ type: 'goto', path: place.path, line: place.line }))
      : '',
  );
  add(
    l10n.t('made by'),
    program !== undefined
      ? link(l10n.t`${b.op || '?'}, instruction ${instruction ?? '?'} of program ${program}`, () =>
          api.postMessage({ type: 'program', program }),
        )
      : '',
  );
  if (program !== undefined && instruction !== undefined) {
    const watch = (label: string, show: boolean): HTMLElement =>
      link(label, () => api.postMessage({ type: 'watch', result: { program, instruction, name: b.name, place }, show }));
    add(l10n.t('its values'), watch(l10n.t('watch it'), false), watch(l10n.t('watch and show it'), true));
  }
  add(
    l10n.t('alive'),
    b.freed === null
      ? l10n.t`from ${count(b.born)} on, step ${count(b.step)}`
      : l10n.t`from ${count(b.born)} to ${count(b.freed)}, step ${count(b.step)}`,
  );
  add(l10n.t('address'), b.reuses ? l10n.t`${b.address}, handed out ${count(b.reuses + 1)} times` : b.address);
  add(l10n.t('had it before'), b.before ? buffer(b.before) : '');
  add(l10n.t('has it after'), b.after ? buffer(b.after) : '');
  add(l10n.t('made of'), ...b.operands.map(buffer));
  add(l10n.t`read by ${count(b.reads)}`, ...b.readers.map(buffer));
  box.append(title, list);
}

// ---- tools -------------------------------------------------------------------------------------------------------------------
byId('fresh').addEventListener('click', refresh);
byId('whole').addEventListener('click', () => {
  alone();
  ask({});
});
byId('peak').addEventListener('click', () => {
  if (!whole) return;
  const [start, end] = whole.whole;
  const half = Math.max(4, Math.round((end - start) / 40));
  ask({ from: Math.max(start, whole.peak.at - half), to: Math.min(end, whole.peak.at + half) });
});
select('mode').addEventListener('change', () => {
  mode = select('mode').value === 'address' ? 'address' : 'time';
  draw();
});
const stepNamed = (text: string): MemoryViewAnswer['steps'][number] | undefined =>
  view?.steps.find((s) => String(s.step) === text);
select('step').addEventListener('change', () => {
  const step = stepNamed(select('step').value);
  alone();
  ask(step ? { from: step.from, to: step.to } : {});
});
select('compare').addEventListener('change', () => {
  const step = stepNamed(select('compare').value);
  if (step) return ask({ from: step.from, to: step.to }, 'compare');
  other = undefined;
  draw();
});
document.querySelectorAll<HTMLElement>('[data-save]').forEach((button) =>
  button.addEventListener('click', () => {
    if (!view || !whole) return;
    const format = button.dataset['save'] as 'png' | 'svg';
    api.postMessage({
      type: 'save',
      format,
      data: picture(format, { view, whole, mode, other }, chart.getWidth(), chart.getHeight()),
    });
  }),
);
document
  .querySelectorAll<HTMLElement>('[data-export]')
  .forEach((button) =>
    button.addEventListener('click', () => api.postMessage({ type: 'export', format: button.dataset['export'] as 'perfetto' })),
  );

// A zoom asks for the stretch in detail once the hand rests.
let rest: ReturnType<typeof setTimeout> | undefined;
chart.on('datazoom', () => {
  clearTimeout(rest);
  rest = setTimeout(() => {
    const [zoom] = (chart.getOption()['dataZoom'] ?? []) as { startValue: number; endValue: number }[];
    if (zoom) ask({ from: Math.floor(zoom.startValue), to: Math.ceil(zoom.endValue) });
  }, 120);
});
chart.on('click', (e) => {
  const value = e.value as number[] | undefined;
  if (mode === 'address' && value?.length === 5 && value[4] !== undefined) choose(value[4]);
});
new ResizeObserver(() => chart.resize()).observe(byId('chart'));
onTheme(() => show());
ask({ fresh: true });
