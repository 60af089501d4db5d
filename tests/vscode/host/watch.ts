import assert from 'node:assert/strict';
import * as vscode from 'vscode';
import type { Sessions } from '../../../extension/src/sessions';
import { WatchModel } from '../../../extension/src/watch/model';
import type { Tests } from './groups';
import { api, started, stoppedAt, trainFile, until } from './session';

/** Watches of one session whose answers to `dvm/watch` wait for `answer`. */
function heldBack(): { model: WatchModel; asked: string[]; answer: () => void } {
  const asked: string[] = [];
  const waiting: (() => void)[] = [];
  let watchId = 0;
  const session = { id: 'held back' };
  const sessions = {
    ...{ onReady: new vscode.EventEmitter().event, onEnded: new vscode.EventEmitter().event },
    onEvent: new vscode.EventEmitter().event,
    ...{ all: () => [session], isReady: () => true, current: () => session },
    request: (command: string, args: { what?: string; watchId?: number }) => {
      asked.push(`${command} ${args.what ?? args.watchId}`);
      if (command !== 'dvm/watch') return Promise.resolve({});
      const id = ++watchId;
      return new Promise((resolve) => waiting.push(() => resolve({ watchId: id })));
    },
  } as unknown as Sessions;
  const memento = {
    get: (_: string, otherwise: unknown) => otherwise,
    update: () => Promise.resolve(),
  } as unknown as vscode.Memento;
  return { model: new WatchModel(memento, sessions), asked, answer: () => waiting.shift()?.() };
}

/** Description of the row of an expression in the Tensor Watch view. */
async function row(expression: string): Promise<string> {
  const { watchTree } = await api();
  const node = watchTree.getChildren().find((n) => n.kind === 'watch' && n.definition.expression === expression);
  return node ? String(watchTree.getTreeItem(node).description) : '';
}

async function facts(expression: string): Promise<Record<string, string>> {
  const { watchTree } = await api();
  const node = watchTree.getChildren().find((n) => n.kind === 'watch' && n.definition.expression === expression);
  const children = node ? watchTree.getChildren(node) : [];
  return Object.fromEntries(children.flatMap((n) => (n.kind === 'fact' ? [[n.name, n.value]] : [])));
}

export const watch: Tests = {
  'a watch set before the session gets samples: type, statistic, sparkline, step': async () => {
    const { watches } = await api();
    await watches.add({ expression: 'h' });
    assert.equal(await row('h'), 'waiting for its line to run');
    await started();
    const text = await until('samples', async () =>
      /^μ \S+ σ \S+ {2}[▁▂▃▄▅▆▇█]{5,8} {2}f32\[4,3\] {2}step \d+$/.exec(await row('h')),
    );
    assert.ok(text);
    const found = await facts('h');
    assert.deepEqual(Object.keys(found), [
      'type',
      'min',
      'max',
      'mean',
      'std',
      'zeros',
      'NaN',
      '+Inf',
      '-Inf',
      'history',
      'sampled',
    ]);
    assert.equal(found['NaN'], '0 of 12');
  },

  'NaN is said in words with its first step; the icon has the error colour': async () => {
    const { watches, watchTree } = await api();
    await watches.add({ expression: 'nanny' });
    await started();
    await until('NaN', async () => (await row('nanny')).includes('NaN 2, +Inf 1 of 12'));
    const first = (await facts('nanny'))['first not finite'] ?? '';
    assert.match(first, /^step \d+$/); // 8, or the first one that was watched
    const stepNow = async (): Promise<number> => Number(/step (\d+)$/.exec(await row('nanny'))?.[1]);
    await until('later steps', async () => (await stepNow()) > Number(first.slice(5)) + 5);
    assert.equal((await facts('nanny'))['first not finite'], first);
    const node = watchTree.getChildren()[0];
    const item = node && watchTree.getTreeItem(node);
    assert.equal((item?.iconPath as vscode.ThemeIcon).id, 'circle-filled');
    assert.match(item?.accessibilityInformation?.label ?? '', /^nanny, not finite/);
  },

  'a placeholder row has the reason; a refused watch says why': async () => {
    const { watches } = await api();
    await watches.add({ expression: 'slow' });
    await watches.add({ expression: 'bad' });
    await started();
    await until('the placeholder', async () =>
      /^copy timed out \(100 ms\): shape only {2}f32\[4,3\] {2}step/.test(await row('slow')),
    );
    await until('the refusal', async () => (await row('bad')) === 'no instruction makes bad');
  },

  'rates are kept and told to the adapter; removing stops the samples': async () => {
    const { watches } = await api();
    await watches.add({ expression: 'h', everyN: 1 });
    await started();
    const key = watches.all()[0]?.key ?? '';
    await until('samples', () => watches.seriesOf(key)?.last);
    await watches.setRate([key], 10);
    const series = watches.seriesOf(key);
    const before = series?.samples ?? 0;
    await until(
      'samples at the new rate',
      () => series && series.samples >= before + 3 && series.last && series.last.step % 10 === 0,
    );
    assert.equal((await facts('h'))['sampled'], 'every 10 launches');
    await watches.remove([key]);
    assert.equal(watches.all().length, 0);
    assert.equal(await row('h'), '');
  },

  'values that nobody wants any more when their watch is answered are taken off at once': async () => {
    const { model, asked, answer } = heldBack();
    const adding = model.add({ expression: 'h' });
    answer();
    const key = await adding;
    const opened = model.setValues(key, true);
    await model.setValues(key, false);
    answer();
    await opened;
    assert.deepEqual(asked, ['dvm/watch stats', 'dvm/watch values', 'dvm/unwatch 2']);
    model.dispose();
  },

  'a page that is closed and opened again before the answer has one watch of values': async () => {
    const { model, asked, answer } = heldBack();
    const adding = model.add({ expression: 'h' });
    answer();
    const key = await adding;
    const first = model.setValues(key, true);
    await model.setValues(key, false);
    const second = model.setValues(key, true);
    answer();
    answer();
    await Promise.all([first, second]);
    assert.deepEqual(asked, ['dvm/watch stats', 'dvm/watch values', 'dvm/watch values', 'dvm/unwatch 3']);
    await model.setValues(key, false);
    assert.equal(asked.at(-1), 'dvm/unwatch 2');
    model.dispose();
  },

  'a watch that was removed before its answer is taken off at once': async () => {
    const { model, asked, answer } = heldBack();
    const adding = model.add({ expression: 'h' });
    await model.remove(model.all().map((d) => d.key));
    answer();
    await adding;
    assert.deepEqual(asked, ['dvm/watch stats', 'dvm/unwatch 1']);
    model.dispose();
  },

  'the same watch is not added twice': async () => {
    const { watches } = await api();
    await watches.add({ expression: 'h', path: '/w/a.py', line: 3 });
    await watches.add({ expression: 'h', path: '/w/a.py', line: 3 });
    await watches.add({ expression: 'h', path: '/w/a.py', line: 4 });
    assert.deepEqual(
      watches.all().map((d) => d.line),
      [3, 4],
    );
  },

  'a variable at a stop is watched at the line that made it': async () => {
    const { watches } = await api();
    await stoppedAt(10);
    await vscode.commands.executeCommand('dvm.watch.addVariable', { variable: { name: 'h', evaluateName: 'h' } });
    const [definition] = watches.all();
    assert.deepEqual([definition?.expression, definition?.path, definition?.line], ['h', trainFile().fsPath, 9]);
  },

  'the name at the cursor is watched at the line that makes it; a selection as it is': async () => {
    const { watches } = await api();
    const editor = await vscode.window.showTextDocument(trainFile());
    editor.selection = new vscode.Selection(9, 14, 9, 14);
    await vscode.commands.executeCommand('dvm.watch.addSelection');
    editor.selection = new vscode.Selection(9, 13, 9, 21);
    await vscode.commands.executeCommand('dvm.watch.addSelection');
    assert.deepEqual(
      watches.all().map((d) => [d.expression, d.line]),
      [
        ['h', 9],
        ['h * rate', undefined],
      ],
    );
  },

  'a watch for the clipboard has all digits': async () => {
    const { watches, watchTree } = await api();
    await watches.add({ expression: 'h' });
    await started(); // and not to a stop: that may come before the watch is set
    await until('samples', () => watches.seriesOf(watches.all()[0]?.key ?? '')?.last);
    await vscode.commands.executeCommand('dvm.watch.copy', watchTree.getChildren()[0]);
    const text = await vscode.env.clipboard.readText();
    assert.match(text, /^h\tstep \d+\ncount\t12\nmin\t-?\d\.\d{6,}\n/);
  },
};
