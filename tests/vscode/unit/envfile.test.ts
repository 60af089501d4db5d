import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseEnvFile } from '../../../extension/src/launch/envfile';

test('comments, export, quotes and escapes', () => {
  const text = '# note\nexport A=1 # one\nB = "x\\ny \\"q\\"" # two\nC=\'$HOME # kept\'\nnot a line\nD=\r\n';
  assert.deepEqual(parseEnvFile(text), { A: '1', B: 'x\ny "q"', C: '$HOME # kept', D: '' });
});
