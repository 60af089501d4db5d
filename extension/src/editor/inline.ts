// Values in the editor while stopped: tensors and short Python values at the ends of their lines, and hover expressions.
import * as vscode from 'vscode';
import { log, messageOf } from '../log';
import type { Sessions } from '../sessions';
import { inlineSummary } from '../text';
import { assignedIn, expressionAt, namesIn } from './names';
import { functionStart } from './scope';

interface Scope {
  name: string;
  variablesReference: number;
  expensive?: boolean;
}

interface Variable {
  name: string;
  value: string;
  type?: string;
  variablesReference: number;
}

/** A value longer than this says nothing at the end of a line. */
const LONGEST = 60;
const LINES_ABOVE = 200;
const NOT_YET = 'not yet computed';

export class InlineValues implements vscode.InlineValuesProvider {
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChangeInlineValues = this.changed.event;

  constructor(private readonly sessions: Sessions) {
    sessions.onRunState(() => this.changed.fire());
  }

  async provideInlineValues(
    document: vscode.TextDocument,
    viewPort: vscode.Range,
    context: vscode.InlineValueContext,
    token: vscode.CancellationToken,
  ): Promise<vscode.InlineValue[]> {
    const session = this.sessions.current();
    const wanted = vscode.workspace.getConfiguration('dvm', document.uri).get<boolean>('inlineValues', true);
    if (!session || !wanted || !this.sessions.isStopped(session)) return [];
    let values: Map<string, string>;
    try {
      values = await this.valuesOf(session, context.frameId);
    } catch (error) {
      log.debug(`inline values: ${messageOf(error)}`);
      return [];
    }
    const last = Math.min(context.stoppedLocation.end.line, document.lineCount - 1);
    const first = Math.max(
      functionStart((line) => document.lineAt(line).text, last),
      viewPort.start.line - 1,
      last - LINES_ABOVE,
      0,
    );
    const found: vscode.InlineValue[] = [];
    const shown = new Set<string>();
    for (let line = first; line <= last && !token.isCancellationRequested; line++) {
      const { text } = document.lineAt(line);
      const assigned = assignedIn(text);
      for (const name of namesIn(text)) {
        const value = values.get(name.text);
        // A name is shown where it is made and on the line of the stop; else only once.
        if (value === undefined || (shown.has(name.text) && line !== last && !assigned.has(name.text))) continue;
        shown.add(name.text);
        found.push(new vscode.InlineValueText(new vscode.Range(line, name.start, line, name.end), value));
      }
    }
    return found;
  }

  /** What is shown behind each name: the Tensors scope's one-line summary, or a local's short value. */
  private async valuesOf(session: vscode.DebugSession, frameId: number): Promise<Map<string, string>> {
    const { scopes } = await this.sessions.request<{ scopes: Scope[] }>('scopes', { frameId }, session);
    const values = new Map<string, string>();
    for (const scope of scopes) {
      const tensors = scope.name === 'Tensors';
      // Where Python stands elsewhere (a backward line), its locals are `Locals of ...`: names of another function.
      if (!tensors && (scope.expensive || scope.name !== 'Locals')) continue;
      const args = { variablesReference: scope.variablesReference };
      const { variables } = await this.sessions.request<{ variables: Variable[] }>('variables', args, session);
      for (const v of variables) {
        if (values.has(v.name)) continue;
        if (tensors && !v.value.endsWith(NOT_YET)) values.set(v.name, `${v.name}: ${inlineSummary(v.value)}`);
        else if (!tensors && simple(v)) values.set(v.name, `${v.name} = ${v.value}`);
      }
    }
    return values;
  }
}

/** Numbers, strings, None and the like; an object's repr belongs in the Variables view. */
const simple = (v: Variable): boolean => v.variablesReference === 0 && v.value.length <= LONGEST && !v.value.startsWith('<');

export class HoverExpressions implements vscode.EvaluatableExpressionProvider {
  provideEvaluatableExpression(
    document: vscode.TextDocument,
    position: vscode.Position,
  ): vscode.EvaluatableExpression | undefined {
    if (vscode.debug.activeDebugSession?.type !== 'dvm') return undefined;
    const name = expressionAt(document.lineAt(position.line).text, position.character);
    return (
      name && new vscode.EvaluatableExpression(new vscode.Range(position.line, name.start, position.line, name.end), name.text)
    );
  }
}
