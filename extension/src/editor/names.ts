// Names in a line of Python: enough of its lexis to leave strings, comments and keywords alone. No editor API here.

const KEYWORDS = new Set(
  (
    'False None True and as assert async await break class continue def del elif else except finally for from global if import in is ' +
    'lambda nonlocal not or pass raise return try while with yield self cls'
  ).split(' '),
);

export interface Name {
  text: string;
  start: number;
  end: number;
}

/** Blanks out strings and the comment of a line, so that positions stay. Strings over several lines are not followed. */
export function codeOnly(line: string): string {
  let out = '';
  for (let i = 0; i < line.length; ) {
    const c = line[i] ?? '';
    if (c === '#') break;
    if (c !== '"' && c !== "'") {
      out += c;
      i++;
      continue;
    }
    const quote = line.startsWith(c.repeat(3), i) ? c.repeat(3) : c;
    let end = i + quote.length;
    while (end < line.length && !line.startsWith(quote, end)) end += line[end] === '\\' ? 2 : 1;
    end = Math.min(end + quote.length, line.length);
    // The letters of f'...', rb'...' belong to the string.
    out = out.replace(/(?<!\w)[rbfu]{1,2}$/i, (prefix) => ' '.repeat(prefix.length)) + ' '.repeat(end - i);
    i = end;
  }
  return out.padEnd(line.length);
}

const DOTTED = /(?<![\w.])[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*/g;

/**
 * Names in a line, each once, in order: dotted ones with every prefix (`self.w1.grad` gives `self.w1.grad` and `self.w1`, `h.sum()` gives
 * `h`). Keywords, called names and the names of keyword arguments are left out.
 */
export function namesIn(line: string): Name[] {
  const code = codeOnly(line);
  const found = new Map<string, Name>();
  for (const { 0: dotted, index: start } of code.matchAll(DOTTED)) {
    const after = code.slice(start + dotted.length);
    if (/^\s*=(?!=)/.test(after) && insideBrackets(code.slice(0, start))) continue;
    let text = /^\s*\(/.test(after) ? parentOf(dotted) : dotted;
    for (; text; text = parentOf(text)) {
      if (!KEYWORDS.has(text) && !found.has(text)) found.set(text, { text, start, end: start + text.length });
    }
  }
  return [...found.values()];
}

/** Names a line gives a value: left of its `=`, loop variables, `as` names. */
export function assignedIn(line: string): Set<string> {
  const code = codeOnly(line);
  const loop = /\bfor\s+(.+?)\s+in\b/.exec(code)?.[1] ?? '';
  const as = /\bas\s+(.+?):\s*$/.exec(code)?.[1] ?? '';
  const equals = [...code.matchAll(/(?<![=!<>:])=(?!=)/g)].find((m) => !insideBrackets(code.slice(0, m.index)))?.index ?? 0;
  // `x: int = 1` and `x @= w` end in an annotation or the operator.
  const target = code.slice(0, equals).replace(/:.*$|[-+*/@%&|^<>]+$/, '');
  return new Set([loop, as, target].flatMap((part) => namesIn(part).map((n) => n.text)));
}

const parentOf = (dotted: string): string => dotted.slice(0, Math.max(0, dotted.lastIndexOf('.')));

const insideBrackets = (before: string): boolean =>
  [...before].reduce((depth, c) => depth + ('([{'.includes(c) ? 1 : ')]}'.includes(c) ? -1 : 0), 0) > 0;

/** Elements and slices by numbers: `[0, 1:3]`. */
const SUBSCRIPT = /^(?:\[[\s\d:,.-]+\])+/;

/**
 * The expression a hover at `column` evaluates: the dotted name up to the word there (`self.w1` over `w1`), over the brackets behind it the
 * element (`h[0, 1]`); no calls, no strings.
 */
export function expressionAt(line: string, column: number): Name | undefined {
  const code = codeOnly(line);
  for (const match of code.matchAll(DOTTED)) {
    const start = match.index;
    const close = start + match[0].length;
    const end = close + (SUBSCRIPT.exec(code.slice(close))?.[0].length ?? 0);
    if (column > close && column <= end) return { text: line.slice(start, end), start, end };
    if (column < start || column > close) continue;
    const rest = /^\w*/.exec(line.slice(column))?.[0].length ?? 0;
    const text = line.slice(start, column + rest);
    return KEYWORDS.has(text) && text !== 'self' ? undefined : { text, start, end: start + text.length };
  }
  return undefined;
}
