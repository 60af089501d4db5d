// Finds a Python interpreter and asks it whether it can run the debug adapter.
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import * as l10n from '@vscode/l10n';
import * as vscode from 'vscode';
import { log, messageOf } from '../log';

/** The version the adapter is built and tested with: it enters pydevd's own suspend loop, so others may not fit. */
export const DEBUGPY = '1.8.22';
const FLOOR = [3, 10] as const;

export interface Interpreter {
  path: string;
  /** Where it was found, for messages: "the setting dvm.python", "PATH", ... */
  origin: string;
}

export interface Probe {
  executable: string;
  version: [number, number, number];
  debugpy: string | null;
  dvm_core: boolean;
  /** All the language server needs. */
  pygls: boolean;
}

const PROBE = `
import importlib.util as u, json, sys
try:
    import debugpy
    version = debugpy.__version__
except Exception:
    version = None
print(json.dumps({"executable": sys.executable, "version": list(sys.version_info[:3]), "debugpy": version,
                  "dvm_core": u.find_spec("dvm_core") is not None, "pygls": all(u.find_spec(n) for n in ("pygls", "watchfiles"))}))
`;

/** The interpreter to debug with: the setting, else the Python extension's choice, else the workspace's .venv, else PATH. */
export async function findInterpreter(folder: vscode.WorkspaceFolder | undefined): Promise<Interpreter> {
  const setting = vscode.workspace.getConfiguration('dvm', folder).get<string>('python', '').trim();
  if (setting) return { path: expand(setting, folder), origin: l10n.t('the setting dvm.python') };
  const chosen = await fromPythonExtension(folder);
  if (chosen) return { path: chosen, origin: l10n.t('the Python extension') };
  const folders = folder ? [folder] : (vscode.workspace.workspaceFolders ?? []);
  for (const f of folders) {
    const local = localEnvironment(f.uri.fsPath);
    if (local) return { path: local, origin: l10n.t('the workspace') };
  }
  return { path: process.platform === 'win32' ? 'python' : 'python3', origin: 'PATH' };
}

/** The interpreter of a `.venv` or `venv` in a folder or in one of the folders above it, if there is one. */
export function localEnvironment(folder: string): string | undefined {
  const inside = process.platform === 'win32' ? ['Scripts', 'python.exe'] : ['bin', 'python'];
  for (let at = folder; ; at = path.dirname(at)) {
    for (const name of ['.venv', 'venv']) {
      const candidate = path.join(at, name, ...inside);
      if (existsSync(candidate)) return candidate;
    }
    if (path.dirname(at) === at) return undefined;
  }
}

function expand(text: string, folder: vscode.WorkspaceFolder | undefined): string {
  const root = folder?.uri.fsPath ?? '';
  const full = text.replaceAll('${workspaceFolder}', root).replace(/^~(?=\/|$)/, process.env['HOME'] ?? '~');
  return /[\\/]/.test(full) && !path.isAbsolute(full) ? path.join(root, full) : full;
}

/** What the Python extension publishes; only the two calls used here. */
interface PythonApi {
  environments?: {
    getActiveEnvironmentPath(resource?: vscode.Uri): { path: string };
    resolveEnvironment(environment: { path: string }): Promise<{ executable?: { uri?: vscode.Uri } } | undefined>;
  };
}

async function fromPythonExtension(folder: vscode.WorkspaceFolder | undefined): Promise<string | undefined> {
  const extension = vscode.extensions.getExtension<PythonApi>('ms-python.python');
  if (!extension) return undefined;
  try {
    const { environments } = await extension.activate();
    if (!environments) return undefined;
    const active = environments.getActiveEnvironmentPath(folder?.uri);
    const resolved = await environments.resolveEnvironment(active);
    return resolved?.executable?.uri?.fsPath;
  } catch (error) {
    log.warn(`the Python extension did not name an interpreter: ${messageOf(error)}`);
    return undefined;
  }
}

/** Runs the interpreter once and asks for its version and packages; throws if it does not run. */
export function probe(python: string): Promise<Probe> {
  return new Promise((resolve, reject) => {
    execFile(python, ['-c', PROBE], { timeout: 30_000, windowsHide: true }, (error, stdout, stderr) => {
      if (error) {
        const reason =
          'code' in error && error.code === 'ENOENT' ? l10n.t('there is no such program') : stderr.trim() || error.message;
        reject(new Error(l10n.t`cannot run the Python interpreter ${python}: ${reason}`));
        return;
      }
      resolve(JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as Probe);
    });
  });
}

const usable = new Map<string, Probe>();

/**
 * True if the interpreter can run the adapter. Otherwise the user is told what is missing, with a button that mends it; true again
 * once that has worked. A good answer is remembered, a bad one asked again.
 */
export async function ensureUsable(found: Interpreter): Promise<boolean> {
  if (usable.has(found.path)) return true;
  let answer: Probe;
  try {
    answer = await probe(found.path);
  } catch (error) {
    return offer(l10n.t`${messageOf(error)} (from ${found.origin}).`, [CHOOSE]);
  }
  const [major, minor] = answer.version;
  const version = answer.version.join('.');
  log.info(
    `${found.path} (${found.origin}): Python ${version}, debugpy ${answer.debugpy ?? 'missing'}, dvm_core ${answer.dvm_core ? 'installed' : 'missing'}`,
  );
  if (major < FLOOR[0] || (major === FLOOR[0] && minor < FLOOR[1])) {
    return offer(l10n.t`Python ${version} (${found.path}) is too old: DVM Live needs ${FLOOR.join('.')} or newer.`, [CHOOSE]);
  }
  if (answer.debugpy !== DEBUGPY) {
    const text =
      answer.debugpy === null
        ? l10n.t`${found.path} (Python ${version}) has no debugpy; the DVM debug adapter needs debugpy ${DEBUGPY}.`
        : l10n.t`${found.path} (Python ${version}) has debugpy ${answer.debugpy}; the DVM debug adapter needs debugpy ${DEBUGPY}.`;
    const fixed = await offer(text, [CHOOSE], {
      button: l10n.t`Install debugpy ${DEBUGPY}`,
      run: () => install(found.path, `debugpy==${DEBUGPY}`),
    });
    if (!fixed) return false;
  }
  usable.set(found.path, answer);
  if (!answer.dvm_core) warnNoCore(found.path);
  return true;
}

/** For tests and after an interpreter was changed. */
export const forgetProbes = (): void => usable.clear();

interface Fix {
  button: string;
  run: () => Promise<boolean>;
}

const CHOOSE = l10n.t('Choose Interpreter');
const SHOW_LOG = l10n.t('Show Log');

async function offer(text: string, buttons: string[], fix?: Fix): Promise<boolean> {
  log.error(text);
  const choice = await vscode.window.showErrorMessage(text, ...(fix ? [fix.button] : []), ...buttons, SHOW_LOG);
  if (choice === SHOW_LOG) log.show();
  if (choice === CHOOSE) {
    const hasPython = vscode.extensions.getExtension('ms-python.python') !== undefined;
    const [command, arg] = hasPython ? ['python.setInterpreter'] : ['workbench.action.openSettings', 'dvm.python'];
    await vscode.commands.executeCommand(command as string, arg);
  }
  return fix && choice === fix.button ? fix.run() : false;
}

/** Installs packages for an interpreter, with progress; false, and a message with pip's reason, if that fails. */
export async function install(python: string, ...packages: string[]): Promise<boolean> {
  const what = packages.join(', ');
  const title = l10n.t`Installing ${what}`;
  return vscode.window.withProgress({ location: vscode.ProgressLocation.Notification, title }, async () => {
    const error = await new Promise<string | undefined>((resolve) => {
      execFile(python, ['-m', 'pip', 'install', ...packages], { timeout: 300_000 }, (failed, stdout, stderr) => {
        log.info(stdout.trim());
        resolve(failed ? stderr.trim() || failed.message : undefined);
      });
    });
    return (
      error === undefined || offer(l10n.t`pip could not install ${what} for ${python}: ${error.split('\n').at(-1) ?? ''}`, [])
    );
  });
}

function warnNoCore(python: string): void {
  const text = l10n.t`dvm_core is not installed for ${python}: Python is debugged, tensors are not. Install the dvm-live package there, or choose another interpreter.`;
  log.warn(text);
  void vscode.window.showWarningMessage(text, CHOOSE).then((choice) => {
    if (choice) void vscode.commands.executeCommand('workbench.action.openSettings', 'dvm.python');
  });
}
