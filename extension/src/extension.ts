// The extension's entry: puts the rooms together. Nothing here knows what a tensor is.
import './l10n';
import * as l10n from '@vscode/l10n';
import * as vscode from 'vscode';
import { HoverExpressions, InlineValues } from './editor/inline';
import { Language } from './editor/language';
import { AdapterFactory } from './launch/adapter';
import { ConfigurationProvider, readyMade } from './launch/configuration';
import { findInterpreter, ensureUsable, forgetProbes } from './launch/interpreter';
import { pickProcess } from './launch/process';
import { guarded, log } from './log';
import { MsbcViewer } from './msbc/viewer';
import type { Notice } from './protocol';
import { registerAsm } from './programs/asm';
import { registerProgramCommands } from './programs/commands';
import { stepTile } from './programs/step';
import { ProgramLenses, Programs } from './programs/listing';
import { ProgramTree, VIEW as PROGRAMS, type Node as ProgramNode } from './programs/tree';
import { HotReload } from './reload/reload';
import { StatusBar } from './reload/status';
import { reportIssue } from './report/issue';
import { Sessions } from './sessions';
import { exportSomething } from './views/export';
import { MemoryView } from './views/memory';
import { TensorViews } from './views/tensor';
import { registerWatchCommands } from './watch/commands';
import { WatchModel } from './watch/model';
import { WatchTree, type Node } from './watch/tree';

const PYTHON: vscode.DocumentSelector = { language: 'python' };

/** What other extensions and the tests can reach. */
export interface Api {
  sessions: Sessions;
  watches: WatchModel;
  watchTree: WatchTree;
  language: Language;
  programTree: ProgramTree;
}

export function activate(context: vscode.ExtensionContext): Api {
  const sessions = new Sessions();
  const status = new StatusBar(sessions);
  const model = new WatchModel(context.workspaceState, sessions);
  const tree = new WatchTree(model);
  const view = vscode.window.createTreeView<Node>('dvm.watch', { treeDataProvider: tree, canSelectMany: true });
  const listings = new Programs(sessions);
  const programTree = new ProgramTree(sessions);
  const programView = vscode.window.createTreeView<ProgramNode>(PROGRAMS, {
    treeDataProvider: programTree,
    showCollapseAll: true,
  });
  programTree.attach(programView);
  const language = new Language(context.extensionPath);
  const configurations = new ConfigurationProvider();
  const command = (id: string, run: () => unknown): vscode.Disposable => vscode.commands.registerCommand(id, run);

  context.subscriptions.push(
    log.channel,
    sessions,
    status,
    model,
    tree,
    view,
    vscode.debug.registerDebugConfigurationProvider('dvm', configurations),
    vscode.debug.registerDebugConfigurationProvider('dvm', readyMade, vscode.DebugConfigurationProviderTriggerKind.Dynamic),
    vscode.debug.registerDebugAdapterDescriptorFactory('dvm', new AdapterFactory(context.extensionPath, sessions)),
    vscode.languages.registerInlineValuesProvider(PYTHON, new InlineValues(sessions)),
    vscode.languages.registerEvaluatableExpressionProvider(PYTHON, new HoverExpressions()),
    language,
    new HotReload(sessions, status),
    listings,
    programTree,
    programView,
    new ProgramLenses(sessions),
    new MsbcViewer(context.extensionUri),
    new MemoryView(context.extensionUri, sessions),
    new TensorViews(context.extensionUri, sessions, model),
    sessions.onEvent((e) => {
      if (e.name === 'dvm/notice') tell(e.body as Notice);
    }),
    ...registerWatchCommands(model, sessions, view),
    ...registerAsm(sessions, listings),
    ...registerProgramCommands(programTree, programView, sessions, model, listings),
    command('dvm.device', () => guarded(l10n.t('switch device'), () => status.chooseDevice())),
    command('dvm.export', () => guarded(l10n.t('export'), () => exportSomething(sessions))),
    command('dvm.pickProcess', () => pickProcess()),
    command('dvm.showLog', () => log.show()),
    command('dvm.reportIssue', () => guarded(l10n.t('prepare a report'), () => reportIssue(context, sessions))),
    command('dvm.stepTile', () => guarded(l10n.t('step by tile instruction'), () => stepTile(sessions))),
    command('dvm.checkPython', () => guarded(l10n.t('check the interpreter'), checkPython)),
  );
  return { sessions, watches: model, watchTree: tree, language, programTree };
}

async function checkPython(): Promise<void> {
  forgetProbes();
  const found = await findInterpreter(vscode.workspace.workspaceFolders?.[0]);
  if (await ensureUsable(found))
    void vscode.window.showInformationMessage(l10n.t`${found.path} (from ${found.origin}) can debug with DVM Live.`);
}

/** What the program's side has to say. Everything is in the log; only what asks for something pops up. */
function tell(notice: Notice): void {
  const place = notice.path ? ` (${notice.path}:${notice.line ?? 1})` : '';
  const text = `${notice.text}${place}`;
  if (notice.category === 'error') {
    log.error(text);
    void vscode.window.showErrorMessage(`DVM: ${notice.text}`);
  } else if (notice.category === 'warning') log.warn(text);
  else log.info(text);
}
