// What the pages are built of: facts, links, lists of terms, rows that take the focus.
import type { RowComponent } from 'tabulator-tables';

export const byId = <T extends HTMLElement = HTMLElement>(id: string): T => document.getElementById(id) as T;

/** `name value`, the value in bold, a link if it leads somewhere. */
export function fact(name: string, value: string, go?: () => void): HTMLElement {
  const box = document.createElement('div');
  const label = document.createElement('span');
  label.textContent = `${name} `;
  const strong = document.createElement('b');
  strong.append(go ? link(value, go) : value);
  box.append(label, strong);
  return box;
}

export function link(label: string, go: () => void): HTMLElement {
  const a = document.createElement('a');
  a.textContent = label;
  a.href = '#';
  a.addEventListener('click', (e) => {
    e.preventDefault();
    go();
  });
  return a;
}

/** A list of terms; `add` leaves out a term that has no value. */
export function definitions(): { list: HTMLDListElement; add: (name: string, ...values: (string | HTMLElement)[]) => void } {
  const list = document.createElement('dl');
  const add = (name: string, ...values: (string | HTMLElement)[]): void => {
    const filled = values.filter(Boolean);
    if (!filled.length) return;
    const dt = document.createElement('dt');
    dt.textContent = name;
    const dd = document.createElement('dd');
    filled.forEach((value) => {
      const line = document.createElement('div');
      line.append(value);
      dd.append(line);
    });
    list.append(dt, dd);
  };
  return { list, add };
}

/** Rows of a table that take the focus: arrows go from row to row, Enter or Space chooses. */
export const focusable =
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

/** The rows take the focus: a grid may hold nothing else that does. */
export const rowsAlone = (table: HTMLElement): void => table.querySelector('.tabulator-tableholder')?.removeAttribute('tabindex');
