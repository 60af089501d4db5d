// What the pages are built of: facts, links, lists of terms.
export const byId = <T extends HTMLElement = HTMLElement>(id: string): T => document.getElementById(id) as T;

/** Says something where it is not said already: the same text set once more is laid out and painted anew. */
export function say(id: string, text: string): void {
  const element = byId(id);
  if (element.textContent !== text) element.textContent = text;
}

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
