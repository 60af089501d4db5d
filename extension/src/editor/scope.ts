// Where a function begins and where a name was given its value, from the text alone. No editor API here.
import { assignedIn } from './names';

/** Text of a line, lines from 0. */
export type TextAt = (line: number) => string;

const indentOf = (text: string): number => text.length - text.trimStart().length;

/** Line of the `def` (or `class`) around a line; 0 at module level. */
export function functionStart(textAt: TextAt, line: number): number {
  while (line > 0 && !textAt(line).trim()) line--;
  let indent = indentOf(textAt(line));
  for (let at = line; at >= 0; at--) {
    const text = textAt(at);
    if (!text.trim() || indentOf(text) > indent || (indentOf(text) === indent && at !== line)) continue;
    if (/^\s*(async\s+)?def\s|^\s*class\s/.test(text)) return at;
    indent = Math.min(indent, indentOf(text));
  }
  return 0;
}

/** The nearest line, at or above `line` and within its function, that gives `name` its value; undefined if there is none. */
export function assignmentAbove(textAt: TextAt, line: number, name: string): number | undefined {
  const first = functionStart(textAt, line);
  for (let at = line; at >= first; at--) if (assignedIn(textAt(at)).has(name)) return at;
  return undefined;
}

/** The line of the statement after the one that begins at `line`, within the same function; undefined if there is none. */
export function statementBelow(textAt: (line: number) => string | undefined, line: number): number | undefined {
  let open = 0;
  const home = indentOf(textAt(functionStart((at) => textAt(at) ?? '', line)) ?? '');
  for (let at = line; ; at++) {
    const text = textAt(at);
    if (text === undefined) return undefined;
    const code = text.replace(/#.*$/, '').replace(/"[^"]*"|'[^']*'/g, '');
    if (at > line && open <= 0 && code.trim()) return indentOf(text) > home ? at : undefined;
    open += (code.match(/[([{]/g)?.length ?? 0) - (code.match(/[)\]}]/g)?.length ?? 0);
    if (code.endsWith('\\')) at++; // what follows belongs to it
  }
}
