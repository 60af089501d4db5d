// A table of things, a row each, of which one can be chosen; also by keyboard.
import {
  FormatModule,
  InteractionModule,
  KeybindingsModule,
  SelectRowModule,
  SortModule,
  Tabulator,
  type Options,
  type RowComponent,
} from 'tabulator-tables';
import { byId } from './parts';

Tabulator.registerModule([FormatModule, InteractionModule, KeybindingsModule, SelectRowModule, SortModule]);

/** The table in the element `table`, whose rows are told apart by `id`; `built`: from when on it takes rows. */
export function rowTable<Row>(options: Options, choose: (row: Row) => void): { table: Tabulator; built: Promise<void> } {
  const box = byId('table');
  const table = new Tabulator(box, {
    layout: 'fitColumns',
    index: 'id',
    selectableRows: 1,
    rowFormatter: focusable((row) => choose(row.getData() as Row)),
    ...options,
  });
  const built = new Promise<void>((resolve) =>
    table.on('tableBuilt', () => {
      // The rows take the focus: a grid may hold nothing else that does.
      box.querySelector('.tabulator-tableholder')?.removeAttribute('tabindex');
      resolve();
    }),
  );
  table.on('rowClick', (_, row) => choose(row.getData() as Row));
  return { table, built };
}

/** Rows that take the focus: arrows go from row to row, Enter or Space chooses. */
const focusable =
  (choose: (row: RowComponent) => void) =>
  (row: RowComponent): void => {
    const element = row.getElement();
    element.tabIndex = 0;
    element.onkeydown = (e) => {
      if (e.key === 'Enter' || e.key === ' ') {
        e.preventDefault();
        choose(row);
      }
      const next = e.key === 'ArrowDown' ? row.getNextRow() : e.key === 'ArrowUp' ? row.getPrevRow() : undefined;
      if (next) {
        e.preventDefault();
        next.getElement().focus();
      }
    };
  };
