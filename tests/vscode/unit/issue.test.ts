import assert from 'node:assert/strict';
import { test } from 'node:test';
import { issueText } from '../../../extension/src/report/text';

const facts = {
  versions: [['VS Code', '1.90']] as [string, string][],
  doctor: 'ok  Python',
  session: '',
  log: ['a'],
  home: '/home/ada',
};

test('a report says first that nothing was sent, and asks what happened', () => {
  const text = issueText(facts);
  assert.match(text, /^<!-- Nothing was sent[^]*## What I did[^]*- VS Code: 1\.90[^]*ok {2}Python/);
  assert.doesNotMatch(text, /Debug sessions/);
});

test('the user’s folder is not named', () => {
  const text = issueText({ ...facts, doctor: '/home/ada/.venv/bin/python', log: ['cannot read /home/ada/x.py'] });
  assert.doesNotMatch(text, /ada/);
  assert.match(text, /~\/\.venv[^]*cannot read ~\/x\.py/);
});

test('a log with a fence in it does not end its own, and only its end is there', () => {
  const text = issueText({ ...facts, log: [...Array.from({ length: 99 }, (_, i) => `line ${i}.`), '```', 'last'] });
  assert.match(text, /````text\nline \d+\.[^]*```\nlast\n````/);
  assert.doesNotMatch(text, /line 1\./);
});
