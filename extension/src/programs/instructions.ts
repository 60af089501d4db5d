// What an instruction of a listing does, from the table docs/bytecode.md is made of (scripts/tables.py writes instructions.json). No editor API.
import * as l10n from '@vscode/l10n';
import table from './instructions.json';

interface Entry {
  name: string;
  code: string;
  operands: string;
  dtype?: string;
  meaning: string;
  cost?: string;
}
const TENSOR = table.tensor as Record<string, Entry>;
const TILE = table.tile as Record<string, Entry>;
const GRAPH = table.graph as Record<string, string[]>;

/** Which side of a binary tile instruction is narrow is said by its name: `Adds`, `ScalarAdd`, `AddX`, `XAdd`. */
const FORMS: [RegExp, string][] = [
  [/^Scalar(\w+)$/, 'the left side is one value'],
  [/^X([A-Z]\w*)$/, 'the left side is one value per row'],
  [/^(\w+)X$/, 'the right side is one value per row'],
  [/^(\w+)s$/, 'the right side is one value'],
];

export interface Found {
  entries: Entry[];
  /** Of a tile instruction: which operand is narrow. */
  form: string;
}

/** The instruction a name of a listing (graph, tensor or tile level) stands for; undefined for any other word. */
export function find(word: string): Found | undefined {
  const has = (from: Record<string, Entry>, name: string): Entry | undefined =>
    Object.hasOwn(from, name) ? from[name] : undefined;
  const own = has(TENSOR, word) ?? has(TILE, word);
  if (own) return { entries: [own], form: '' };
  if (Object.hasOwn(GRAPH, word)) return { entries: (GRAPH[word] ?? []).flatMap((name) => has(TENSOR, name) ?? []), form: '' };
  for (const [pattern, form] of FORMS) {
    const base = has(TILE, pattern.exec(word)?.[1] ?? '');
    if (base) return { entries: [base], form };
  }
  return undefined;
}

/** The hover, as Markdown paragraphs. */
export function hoverText({ entries, form }: Found): string[] {
  const escaped = (text: string): string => text.replace(/[\\`*_{}[\]()#+\-.!|<>]/g, '\\$&');
  return entries.map((e) => {
    const facts = [
      l10n.t`operands: ${e.operands}`,
      e.dtype ? l10n.t`result: ${e.dtype}` : '',
      e.cost ? l10n.t`cost: ${e.cost}` : '',
      form,
    ];
    return `**${escaped(e.name)}** \`${e.code}\`: ${escaped(e.meaning)}\n\n${facts.filter(Boolean).map(escaped).join(' · ')}`;
  });
}
