// Which two axes are drawn, and the index of each other one.
import * as l10n from '@vscode/l10n';
import { count } from '../src/text';
import { extentOf, withAxis } from '../src/views/planes';
import type { Window } from '../src/views/tensor_messages';

const box = document.getElementById('axes') as HTMLElement;
let drawn = '';

/** Draws the controls where shape or axes are others than before; `change` gets the window that was chosen. */
export function drawAxes(shape: readonly number[], window: Window, change: (window: Window) => void): void {
  const axes = window.axes ?? [-1, -1];
  const key = JSON.stringify([shape, axes]);
  if (key === drawn) return;
  drawn = key;
  box.hidden = shape.length < 2;
  if (box.hidden) return void box.replaceChildren();
  const indices = [...(window.indices ?? shape.map(() => 0))];
  const choices = (['rows', 'columns'] as const).map((what, which) => {
    const select = document.createElement('vscode-single-select') as HTMLElement & { value: string };
    select.setAttribute('label', what === 'rows' ? l10n.t('Axis of the rows') : l10n.t('Axis of the columns'));
    select.innerHTML = shape.map((n, i) => `<vscode-option value="${i}">${l10n.t`axis ${i} (${n})`}</vscode-option>`).join('');
    select.value = String(axes[which as 0 | 1]);
    // The element takes its value from its options only once it has drawn them.
    void customElements.whenDefined('vscode-single-select').then(() => (select.value = String(axes[which as 0 | 1])));
    select.addEventListener('change', () => change(withAxis({ ...window, indices }, which as 0 | 1, Number(select.value))));
    return labelled(what === 'rows' ? l10n.t('rows') : l10n.t('columns'), select);
  });
  const sliders = shape.flatMap((n, i) => {
    if (axes.includes(i) || n < 2) return [];
    const range = Object.assign(document.createElement('input'), { type: 'range', min: '0', max: String(n - 1) });
    range.value = String(indices[i] ?? 0);
    const text = document.createElement('output');
    const write = (): void => {
      text.textContent = l10n.t`${range.value} of ${n}`;
      range.setAttribute('aria-valuetext', text.textContent);
    };
    write();
    range.oninput = () => {
      indices[i] = Number(range.value);
      write();
      change({ ...window, indices: [...indices] });
    };
    const label = labelled(l10n.t`axis ${i}`, range);
    label.append(text);
    return [label];
  });
  box.replaceChildren(...choices, ...sliders);
}

function labelled(text: string, control: HTMLElement): HTMLLabelElement {
  const label = document.createElement('label');
  label.append(`${text} `, control);
  return label;
}

/** `rows 0 to 511 of 4,096 …` where less than the whole of the two axes is drawn; else their extents. */
export function partText(
  shape: readonly number[],
  axes: readonly [number, number],
  rows: [number, number],
  columns: [number, number],
): string {
  const [height, width] = axes.map((axis) => extentOf(shape, axis)) as [number, number];
  const [[top, bottom], [left, right]] = [rows, columns];
  return [
    bottom - top === height ? l10n.t`${count(height)} rows` : l10n.t`rows ${top} to ${bottom - 1} of ${count(height)}`,
    right - left === width ? l10n.t`${count(width)} columns` : l10n.t`columns ${left} to ${right - 1} of ${count(width)}`,
  ].join(', ');
}
