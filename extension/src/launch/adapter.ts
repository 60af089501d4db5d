// Starts the debug adapter: `python -m dvm_adapter`, taken from the copy that comes with the extension.
import path from 'node:path';
import * as vscode from 'vscode';
import { log } from '../log';
import { findInterpreter } from './interpreter';

export class AdapterFactory implements vscode.DebugAdapterDescriptorFactory {
  constructor(private readonly extensionPath: string) {}

  async createDebugAdapterDescriptor(session: vscode.DebugSession): Promise<vscode.DebugAdapterDescriptor> {
    const python = adapterPython(session.configuration) ?? (await findInterpreter(session.workspaceFolder)).path;
    log.info(`${session.name}: ${python} -m dvm_adapter`);
    return new vscode.DebugAdapterExecutable(python, ['-m', 'dvm_adapter'], { env: adapterEnvironment(this.extensionPath) });
  }
}

/** The interpreter a configuration names for the adapter: its own, else the program's. */
export function adapterPython(configuration: vscode.DebugConfiguration): string | undefined {
  const own: unknown = configuration['debugAdapterPython'] ?? configuration['python'];
  const first: unknown = Array.isArray(own) ? own[0] : own;
  return typeof first === 'string' && first ? first : undefined;
}

/** The environment with the bundled adapter in front of PYTHONPATH: adapter and wire protocol of one version. DVM_BUNDLED says which folder
    that is: the adapter takes it out for the program, which has its own. */
export function adapterEnvironment(extensionPath: string): Record<string, string> {
  const inherited = Object.entries(process.env).filter((e): e is [string, string] => e[1] !== undefined);
  const environment = Object.fromEntries(inherited);
  const bundled = path.join(extensionPath, 'adapter');
  const before = environment['PYTHONPATH'];
  environment['PYTHONPATH'] = before ? bundled + path.delimiter + before : bundled;
  environment['DVM_BUNDLED'] = bundled;
  environment['PYTHONUNBUFFERED'] = '1';
  return environment;
}
