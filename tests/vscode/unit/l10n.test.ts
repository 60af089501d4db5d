// The texts of the extension and its pages, in Chinese: every one that the sources say through l10n.t, with the same placeholders.
import { getL10nJson } from '@vscode/l10n-dev';
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import chinese from '../../../l10n/bundle.l10n.zh-cn.json';

const root = path.resolve(__dirname, '../../..');
const sources = ['extension/src', 'extension/webview'].flatMap((folder) =>
  readdirSync(path.join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => path.join(root, folder, name)),
);

test('l10n/bundle.l10n.zh-cn.json has every text of the sources, and no other', async () => {
  const said = await getL10nJson(sources.map((file) => ({ extension: '.ts', contents: readFileSync(file, 'utf8') })));
  const [keys, translated] = [new Set(Object.keys(said)), new Set(Object.keys(chinese))];
  assert.ok(keys.size > 100, `only ${keys.size} texts found`);
  assert.deepEqual(
    [...keys].filter((key) => !translated.has(key)),
    [],
    'texts without a Chinese one',
  );
  assert.deepEqual(
    [...translated].filter((key) => !keys.has(key)),
    [],
    'translations of texts that nothing says',
  );
});

test('a translation has the placeholders and tags of its text', () => {
  const kept = (text: string): string[] => (text.match(/\{\d+\}|<[^>]+>/g) ?? []).sort();
  for (const [english, text] of Object.entries(chinese)) {
    assert.deepEqual(kept(text), kept(english), english);
    assert.ok(/\p{Script=Han}/u.test(text) || ['rank {0}', '{0} of {1}'].includes(english), `${english} is not in Chinese`);
  }
});
