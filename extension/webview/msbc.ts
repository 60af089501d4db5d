// The page of a .msbc file: inputs and instructions in one table, and beside it what is known of the row that is chosen.
import './words';
import * as l10n from '@vscode/l10n';
import '@vscode-elements/elements/dist/vscode-button/index.js';
import type { CellComponent } from 'tabulator-tables';
import { areaText, headFacts, sizeOf, type FromMsbcPage, type MsbcFacts, type Remedy, type ToMsbcPage } from '../src/msbc/facts';
import { baseName, bytes, count, typeText } from '../src/text';
import { byId, definitions, fact, link } from './parts';
import { rowTable } from './row_table';

declare function acquireVsCodeApi(): { postMessage(message: FromMsbcPage): void };
const api = acquireVsCodeApi();

interface Row {
  id: string;
  /** Among the instructions; -1: an input. */
  number: number;
  text: string;
  type: string;
  size: number;
  name: string;
  area: number;
  place: string;
}

let facts: MsbcFacts | undefined;
let chosen: string | undefined;

// ---- the table -------------------------------------------------------------------------------------------------------------------
const columns = [
  { title: l10n.t('value'), field: 'id', headerSort: false, minWidth: 60, cssClass: 'code' },
  { title: l10n.t('made by'), field: 'text', widthGrow: 4, cssClass: 'code', tooltip: true },
  { title: l10n.t('type'), field: 'type', widthGrow: 2, cssClass: 'code' },
  {
    title: l10n.t('size'),
    field: 'size',
    sorter: 'number' as const,
    minWidth: 80,
    hozAlign: 'right' as const,
    headerHozAlign: 'right' as const,
    formatter: (cell: CellComponent) => bytes(Number(cell.getValue())),
  },
  { title: l10n.t('name'), field: 'name', minWidth: 80 },
  {
    title: l10n.t('area'),
    field: 'area',
    sorter: 'number' as const,
    minWidth: 90,
    formatter: (cell: CellComponent) => areaText(facts?.areas ?? [], Number(cell.getValue())),
  },
  { title: l10n.t('line'), field: 'place', widthGrow: 2 },
];
const { table, built } = rowTable<Row>(
  { height: '100%', columns, placeholder: l10n.t('The program has no instructions.') },
  (row) => choose(row.id),
);

function rows(f: MsbcFacts): Row[] {
  const inputs = f.inputs.map((i) => ({
    id: i.value,
    number: -1,
    text: i.constant ? l10n.t('input, its data is in the file') : l10n.t('input'),
    type: typeText(i.dtype, i.shape),
    size: sizeOf(i),
    name: i.name,
    area: -1,
    place: '',
  }));
  const instructions = f.instructions.map((i, number) => ({
    id: i.value,
    number,
    text: i.text,
    type: typeText(i.dtype, i.shape),
    size: sizeOf(i),
    name: i.name,
    area: i.area,
    place: i.file && i.line ? `${baseName(i.file)}:${i.line}` : '',
  }));
  return [...inputs, ...instructions];
}

// ---- showing -----------------------------------------------------------------------------------------------------------------
async function show(now: MsbcFacts): Promise<void> {
  facts = now;
  byId('refused').hidden = true;
  byId('below').hidden = false;
  byId('facts').replaceChildren(...headFacts(now).map(([name, value]) => fact(name, value)));
  const notes = [
    now.instructionCount > now.instructions.length
      ? l10n.t`The first ${count(now.instructions.length)} of ${count(now.instructionCount)} instructions; dvm dis shows all.`
      : '',
    now.areasRefused ? l10n.t`Areas are not known: ${now.areasRefused}` : '',
  ].filter(Boolean);
  byId('note').textContent = notes.join(' ');
  byId('note').hidden = !notes.length;
  await built;
  table.redraw(true); // what is built while it is hidden has no heads
  await table.replaceData(rows(now));
  tell();
}

function choose(id: string): void {
  chosen = id;
  table.deselectRow();
  table.selectRow(id);
  tell();
}

/** To a value that another names: its row comes into sight and takes the focus. */
function reveal(id: string): void {
  choose(id);
  void table.scrollToRow(id, 'center', false).then(() => {
    const row = table.getRow(id);
    if (row) row.getElement().focus();
  });
}

/** What is known of the chosen row, else of the file. */
function tell(): void {
  if (!facts) return;
  const box = byId('selected');
  const { list, add } = definitions();
  const title = document.createElement('h2');
  const instruction = facts.instructions.find((i) => i.value === chosen);
  const input = facts.inputs.find((i) => i.value === chosen);
  const known = new Set([...facts.inputs, ...facts.instructions].map((v) => v.value));
  const value = (id: string): string | HTMLElement => (known.has(id) ? link(id, () => reveal(id)) : id);
  if (instruction) {
    const i = instruction;
    title.textContent = `${i.value} = ${i.text}`;
    add(l10n.t('result'), `${typeText(i.dtype, i.shape)}, ${bytes(sizeOf(i))}`);
    add(l10n.t('name'), i.name);
    add(
      l10n.t('source line'),
      i.file && i.line
        ? link(`${baseName(i.file)}:${i.line}`, () => api.postMessage({ type: 'goto', path: i.file, line: i.line }))
        : '',
      i.function,
      i.backward ? l10n.t('the gradient of this line') : '',
    );
    add(l10n.t('made of'), ...(i.text.match(/%i?\d+/g) ?? []).map(value));
    add(l10n.t('read by'), ...readers(facts, i.value).map(value));
    addArea(i.area, add);
    add(l10n.t('in the file'), l10n.t`${count(i.bytes)} bytes at ${`0x${i.offset.toString(16)}`}`);
    add('SHA-256', hash(i.sha256));
  } else if (input) {
    title.textContent = `${input.value} ${input.name}`;
    add(l10n.t('type'), `${typeText(input.dtype, input.shape)}, ${bytes(sizeOf(input))}`);
    add(l10n.t('strides'), input.strides ? input.strides.map(count).join(', ') : '');
    add(l10n.t('class'), input.class);
    add(l10n.t('data'), input.constant ? l10n.t('in the file') : l10n.t('given at a call'));
    add(l10n.t('read by'), ...readers(facts, input.value).map(value));
  } else {
    title.textContent = l10n.t('The file');
    add(l10n.t('format'), l10n.t`MSBC version ${facts.version}`);
    add(l10n.t('size'), l10n.t`${bytes(facts.bytes)} (${count(facts.bytes)} bytes)`);
    add(l10n.t('sections'), ...facts.sections.map((s) => `${s.name}, ${bytes(s.bytes)}`));
    add(l10n.t('SHA-256 of the file'), hash(facts.sha256));
    add(l10n.t('SHA-256 of what it does'), hash(facts.functionSha256));
  }
  box.replaceChildren(title, list);
}

function addArea(index: number, add: (name: string, ...values: string[]) => void): void {
  const area = facts?.areas[index];
  if (!area) return;
  add(
    l10n.t('area'),
    areaText(facts?.areas ?? [], index),
    l10n.t`tiles: ${count(area.tiles)} of ${count(area.tileRows)} × ${count(area.tileCols)}`,
    l10n.t`ends: ${area.reason}`,
  );
}

const MOST_READERS = 20;
function readers(f: MsbcFacts, value: string): string[] {
  const reads = new RegExp(`${value}\\b`);
  const found = f.instructions.filter((i) => reads.test(i.text)).map((i) => i.value);
  return found.length > MOST_READERS
    ? [...found.slice(0, MOST_READERS), l10n.t`${count(found.length - MOST_READERS)} more`]
    : found;
}

function hash(text: string): HTMLElement {
  const box = document.createElement('span');
  box.className = 'hash';
  box.append(
    text,
    ' ',
    link(l10n.t('copy'), () => api.postMessage({ type: 'copy', text })),
  );
  return box;
}

// ---- a file that is not shown ------------------------------------------------------------------------------------------------
const LABELS: Record<Remedy, string> = {
  trust: l10n.t('Manage Workspace Trust'),
  interpreter: l10n.t('Choose Interpreter'),
  again: l10n.t('Try Again'),
};

function refuse({ title, text, remedies }: ToMsbcPage & { type: 'refused' }): void {
  facts = undefined;
  byId('facts').replaceChildren();
  byId('below').hidden = true;
  byId('note').hidden = true;
  const box = byId('refused');
  box.querySelector('h1')!.textContent = title;
  box.querySelector('p')!.textContent = text;
  byId('remedies').replaceChildren(
    ...remedies.map((remedy, i) => {
      const button = Object.assign(document.createElement('vscode-button'), { textContent: LABELS[remedy] });
      button.toggleAttribute('secondary', i > 0);
      button.addEventListener('click', () => api.postMessage({ type: 'remedy', remedy }));
      return button;
    }),
  );
  box.hidden = false;
}

window.addEventListener('message', ({ data }: MessageEvent<ToMsbcPage>) => {
  if (data.type === 'refused') refuse(data);
  else void show(data.facts);
});
byId('below').hidden = true;
api.postMessage({ type: 'ready' });
