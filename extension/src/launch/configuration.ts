// Completes launch configurations: no launch.json, missing attributes, env files; and says what is wrong with one before it starts.
import { existsSync, readFileSync } from 'node:fs';
import * as l10n from '@vscode/l10n';
import * as vscode from 'vscode';
import { messageOf } from '../log';
import { adapterPython } from './adapter';
import { parseEnvFile } from './envfile';
import { ensureUsable, findInterpreter } from './interpreter';

const CURRENT_FILE = {
  name: l10n.t('DVM: Current File'),
  type: 'dvm',
  request: 'launch',
  program: '${file}',
  console: 'integratedTerminal',
};

/** What can be started without a launch.json, as the list of debuggers offers it. */
const READY_MADE: readonly vscode.DebugConfiguration[] = [
  CURRENT_FILE,
  { ...CURRENT_FILE, name: l10n.t('DVM: Current File on a Simulated NPU'), dvm: { device: 'npu-sim:910b' } },
  {
    name: l10n.t('DVM: Current File in Two Ranks (torchrun)'),
    type: 'dvm',
    request: 'launch',
    module: 'torch.distributed.run',
    args: ['--standalone', '--nproc-per-node', '2', '${file}'],
    console: 'integratedTerminal',
  },
  { name: l10n.t('DVM: Running Process'), type: 'dvm', request: 'attach', processId: '${command:pickProcess}' },
];

export const readyMade: vscode.DebugConfigurationProvider = {
  /** The editor asks for each folder, and once more for none: what it is told then is shown beside the rest. */
  provideDebugConfigurations: (folder) =>
    folder || !vscode.workspace.workspaceFolders?.length ? READY_MADE.map((c) => ({ ...c })) : [],
};

export class ConfigurationProvider implements vscode.DebugConfigurationProvider {
  provideDebugConfigurations(): vscode.DebugConfiguration[] {
    return [{ ...CURRENT_FILE }];
  }

  resolveDebugConfiguration(
    _folder: vscode.WorkspaceFolder | undefined,
    config: vscode.DebugConfiguration,
  ): vscode.ProviderResult<vscode.DebugConfiguration> {
    if (config.type || config.request || config.name) return config;
    // F5 without a launch.json: the file in the editor.
    if (vscode.window.activeTextEditor?.document.languageId === 'python') return { ...CURRENT_FILE };
    void vscode.window.showErrorMessage(l10n.t('Open the Python file to debug, or add a launch configuration of type "dvm".'));
    return undefined;
  }

  async resolveDebugConfigurationWithSubstitutedVariables(
    folder: vscode.WorkspaceFolder | undefined,
    config: vscode.DebugConfiguration,
  ): Promise<vscode.DebugConfiguration | undefined> {
    const problem = problemOf(config);
    if (problem) return refuse(config, problem);
    try {
      applyEnvFile(config);
    } catch (error) {
      return refuse(config, l10n.t`its envFile ${config['envFile']} cannot be read: ${messageOf(error)}`);
    }
    // A child session (a sub-process, a rank) and an adapter that already runs bring their own interpreter.
    if (config['subProcessId'] !== undefined || config['debugServer'] !== undefined) return config;
    const named = adapterPython(config);
    const found = named ? { path: named, origin: l10n.t('the launch configuration') } : await findInterpreter(folder);
    if (!(await ensureUsable(found))) return undefined;
    if (config.request === 'launch') {
      config['python'] ??= found.path;
      config['console'] ??= 'integratedTerminal';
      config['cwd'] ??= folder?.uri.fsPath;
    } else config['debugAdapterPython'] ??= found.path;
    return config;
  }
}

/** What keeps a configuration from being started, in words; undefined if nothing does. */
export function problemOf(config: vscode.DebugConfiguration): string | undefined {
  const has = (...names: string[]): boolean => names.some((n) => config[n] !== undefined && config[n] !== '');
  if (config.request === 'launch') {
    if (!has('program', 'module', 'code')) return l10n.t('it names nothing to run: add "program", "module" or "code"');
    const program: unknown = config['program'];
    if (typeof program === 'string' && !existsSync(program)) return l10n.t`there is no file ${program}`;
  } else if (config.request === 'attach') {
    if (!has('connect', 'listen', 'processId', 'subProcessId', 'port'))
      return l10n.t('it names no target: add "connect", "listen" or "processId"');
  } else return l10n.t`its "request" is "${config.request}": it must be "launch" or "attach"`;
  return undefined;
}

/** Variables of `envFile` join `env`, which wins. A missing file at the default place is no error. */
export function applyEnvFile(config: vscode.DebugConfiguration): void {
  const file: unknown = config['envFile'];
  if (typeof file !== 'string' || !file) return;
  if (!existsSync(file) && file.endsWith('/.env')) return;
  config['env'] = { ...parseEnvFile(readFileSync(file, 'utf8')), ...(config['env'] as object | undefined) };
}

async function refuse(config: vscode.DebugConfiguration, problem: string): Promise<undefined> {
  const open = l10n.t('Open launch.json');
  const choice = await vscode.window.showErrorMessage(
    l10n.t`The launch configuration "${config.name}" cannot start: ${problem}.`,
    { modal: false },
    open,
  );
  if (choice === open) await vscode.commands.executeCommand('workbench.action.debug.configure');
  return undefined;
}
