// What package.json shows to people: every text is a %key% that package.nls.json and its Chinese twin both have.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import manifest from '../../../package.json';
import english from '../../../package.nls.json';
import chinese from '../../../package.nls.zh-cn.json';

const TEXTS =
  /^(description|markdownDescription|title|shortTitle|label|contents|unverifiedBreakpoints|displayName|contextualTitle|category|\w*[dD]eprecationMessage)$/;
/** Names are the same in every language. */
const NAMES = ['DVM', 'DVM Live'];

/** Texts that people see, with the way to each. */
function texts(at: unknown, way: string[] = []): [string, string][] {
  const [last = '', before = ''] = way.slice().reverse();
  if (typeof at === 'string')
    return TEXTS.test(last) || /[eE]numDescriptions$/.test(before) || (last === 'name' && way[0] === 'contributes')
      ? [[way.join('.'), at]]
      : [];
  return at && typeof at === 'object' ? Object.entries(at).flatMap(([key, value]) => texts(value, [...way, key])) : [];
}

const keyOf = (text: string): string | undefined => /^%(.+)%$/.exec(text)?.[1];
const shown = texts(manifest).filter(([, text]) => !NAMES.includes(text));

test('every text of package.json is a %key%', () => {
  const literal = shown.filter(([, text]) => !keyOf(text)).map(([way, text]) => `${way}: ${text}`);
  assert.deepEqual(literal, [], 'move these into package.nls.json and package.nls.zh-cn.json');
});

test('both languages have the same keys, those that package.json uses', () => {
  const used = [...new Set(shown.map(([, text]) => keyOf(text) ?? ''))].filter(Boolean).sort();
  assert.deepEqual(Object.keys(english).sort(), used, 'package.nls.json');
  assert.deepEqual(Object.keys(chinese).sort(), used, 'package.nls.zh-cn.json');
});

/** What a translation must keep: links to commands and settings, code, tab stops of a snippet. */
const kept = (text: string): string[] => (text.match(/\(command:[\w.]+\)|`[^`]+`|\$\{\d+/g) ?? []).sort();

test('a translation has the links, code and tab stops of the English text', () => {
  const other = new Map(Object.entries(chinese));
  for (const [key, text] of Object.entries(english)) {
    assert.deepEqual(kept(other.get(key) ?? ''), kept(text), key);
    if (key !== 'displayName') assert.match(other.get(key) ?? '', /\p{Script=Han}/u, `${key} is not in Chinese`);
  }
});
