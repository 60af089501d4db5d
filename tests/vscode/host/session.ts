// A debug session on the stand-in adapter, and what the tests wait for.
import { spawn, type ChildProcess } from 'node:child_process';
import path from 'node:path';
import * as vscode from 'vscode';
import type { Api } from '../../../extension/src/extension';

export const folder = (): vscode.WorkspaceFolder => {
  const first = vscode.workspace.workspaceFolders?.[0];
  if (!first) throw new Error('the tests need a workspace folder');
  return first;
};

/** What the extension under test gives to others. */
export async function api(): Promise<Api> {
  const extension = vscode.extensions.getExtension<Api>('dvm-live.dvm-live');
  if (!extension) throw new Error('the extension under test is not loaded');
  return extension.activate();
}

export const trainFile = (): vscode.Uri => vscode.Uri.joinPath(folder().uri, 'train.py');

/** Gives what `look` gives as soon as it is truthy; throws after `limit` ms, naming what was waited for. */
export async function until<T>(what: string, look: () => T | Promise<T>, limit = 15_000): Promise<NonNullable<Awaited<T>>> {
  const end = Date.now() + limit;
  for (;;) {
    const value = await look();
    if (value) return value as NonNullable<Awaited<T>>;
    if (Date.now() > end) throw new Error(`waited ${limit} ms for ${what}`);
    await new Promise((r) => setTimeout(r, 50));
  }
}

let adapter: ChildProcess | undefined;

async function adapterPort(): Promise<number> {
  const script = path.join(process.env['DVM_TESTS'] ?? '', 'fake_adapter.py');
  const child = spawn(process.env['DVM_TEST_PYTHON'] ?? 'python3', [script, '--listen'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  adapter = child;
  return new Promise((resolve, reject) => {
    child.stdout?.once('data', (text: Buffer) => resolve(Number(text.toString())));
    child.once('exit', (code) => reject(new Error(`the stand-in adapter ended with ${code}`)));
  });
}

/** Starts a session on the stand-in, with a breakpoint at a line of train.py, and waits for the stop. */
export async function stoppedAt(line: number): Promise<vscode.DebugSession> {
  const at = new vscode.Location(trainFile(), new vscode.Position(line - 1, 0));
  vscode.debug.addBreakpoints([new vscode.SourceBreakpoint(at)]);
  const session = await started();
  await until('a stop', () => vscode.debug.activeStackItem instanceof vscode.DebugStackFrame);
  return session;
}

/** Starts a session on the stand-in and waits until it runs. */
export async function started(more: object = {}): Promise<vscode.DebugSession> {
  const debugServer = await adapterPort();
  const config = { name: 'stand-in', type: 'dvm', request: 'launch', program: trainFile().fsPath, debugServer, ...more };
  if (!(await vscode.debug.startDebugging(folder(), config))) throw new Error('the session did not start');
  return until('the session', () => vscode.debug.activeDebugSession);
}

/** Ends the session and takes everything a test may have left away. */
export async function cleanUp(): Promise<void> {
  await vscode.debug.stopDebugging();
  await until('the session to end', () => !vscode.debug.activeDebugSession);
  vscode.debug.removeBreakpoints(vscode.debug.breakpoints);
  await vscode.commands.executeCommand('dvm.watch.removeAll');
  await vscode.commands.executeCommand('workbench.action.closeAllEditors');
  adapter?.kill();
  adapter = undefined;
}
