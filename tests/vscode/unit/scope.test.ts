import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assignmentAbove, functionStart, statementBelow } from '../../../extension/src/editor/scope';

const TEXT = `import x
h = 0
class Net:
    def construct(self, a):
        h = a @ self.w

        for i in range(3):
            h = h + i
            y = relu(h)
        return y

def other():
    return h`.split('\n');
const at = (line: number): string => TEXT[line] ?? '';

test('a function begins at the def around a line, whatever is nested in it', () => {
  assert.deepEqual(
    [3, 4, 5, 8, 9].map((line) => functionStart(at, line)),
    [3, 3, 3, 3, 3],
  );
  assert.equal(functionStart(at, 12), 11);
  assert.equal(functionStart(at, 1), 0);
});

test('a name was made by the nearest assignment above, within its function', () => {
  assert.equal(assignmentAbove(at, 8, 'h'), 7);
  assert.equal(assignmentAbove(at, 6, 'h'), 4);
  assert.equal(assignmentAbove(at, 6, 'i'), 6);
  assert.equal(assignmentAbove(at, 12, 'h'), undefined);
  assert.equal(assignmentAbove(at, 9, 'a'), undefined);
});

test('the statement below is the next of the same function, whatever lies between', () => {
  const lines = `def f(x):
    h = g(
        x,  # (
    )
    # a remark

    if x:
        y = h + \\
            1
    return h
def other():
    pass`.split('\n');
  const below = (line: number): number | undefined => statementBelow((n) => lines[n], line);
  assert.deepEqual([1, 6, 7, 9, 11].map(below), [6, 7, 9, undefined, undefined]);
});
