// Starts the debug adapter: `python -m dvm_adapter`, taken from the copy that comes with the extension. It is a process of the extension's, so
// that views ask it directly.
import path from 'node:path';
import * as vscode from 'vscode';
import { log } from '../log';
import type { Sessions } from '../sessions';
import type { DapMessage } from './adapter_process';
import { findInterpreter } from './interpreter';

export class AdapterFactory implements vscode.DebugAdapterDescriptorFactory {
  constructor(
    private readonly extensionPath: string,
    private readonly sessions: Sessions,
  ) {}

  async createDebugAdapterDescriptor(session: vscode.DebugSession): Promise<vscode.DebugAdapterDescriptor> {
    const python = adapterPython(session.configuration) ?? (await findInterpreter(session.workspaceFolder)).path;
    log.info(`${session.name}: ${python} -m dvm_adapter`);
    const { AdapterProcess } = await import('./adapter_process');
    const messages = new vscode.EventEmitter<vscode.DebugProtocolMessage>();
    const process = new AdapterProcess(python, ['-m', 'dvm_adapter'], adapterEnvironment(this.extensionPath), {
      message: (message) => messages.fire(message),
      aside: (event) => this.sessions.receive(session, event),
      text: (text) => log.warn(`${session.name}: ${text.trimEnd()}`),
      ended(text, seen) {
        log.error(`${session.name}: ${text}`);
        if (!seen) void vscode.window.showErrorMessage(`${session.name}: ${text}`);
      },
    });
    this.sessions.reached(session, process);
    return new vscode.DebugAdapterInlineImplementation({
      onDidSendMessage: messages.event,
      handleMessage: (message) => process.send(message as DapMessage),
      dispose: () => process.dispose(),
    });
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
