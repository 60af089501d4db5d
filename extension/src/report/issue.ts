// What a report of a fault needs, gathered into a text that is shown and nothing else: whoever reads it decides what becomes of it.
import { execFile } from 'node:child_process';
import os from 'node:os';
import * as l10n from '@vscode/l10n';
import * as vscode from 'vscode';
import { adapterEnvironment } from '../launch/adapter';
import { findInterpreter } from '../launch/interpreter';
import { log, messageOf } from '../log';
import type { Status } from '../protocol';
import type { Sessions } from '../sessions';
import { issueText, type Facts } from './text';

const DOCTOR_MS = 60_000;

export async function reportIssue(context: vscode.ExtensionContext, sessions: Sessions): Promise<void> {
  const title = l10n.t('Preparing a report');
  const facts = await vscode.window.withProgress({ location: vscode.ProgressLocation.Window, title }, () =>
    gather(context, sessions),
  );
  const document = await vscode.workspace.openTextDocument({ language: 'markdown', content: issueText(facts) });
  await vscode.window.showTextDocument(document);
}

async function gather(context: vscode.ExtensionContext, sessions: Sessions): Promise<Facts> {
  const { version } = context.extension.packageJSON as { version: string };
  return {
    versions: [
      ['DVM Live', version],
      ['VS Code', `${vscode.version} (${vscode.env.appName}, ${vscode.env.language})`],
      ['remote', vscode.env.remoteName ?? 'none'],
      ['system', `${os.type()} ${os.release()} ${os.arch()}, Node ${process.versions.node}`],
      ['processor', `${os.cpus()[0]?.model.trim() ?? 'unknown'}, ${os.cpus().length} threads`],
      ['workspace', vscode.workspace.isTrusted ? 'trusted' : 'not trusted'],
    ],
    doctor: await doctor(context.extensionPath),
    session: await session(sessions),
    log: [...log.tail()],
    home: os.homedir(),
  };
}

/** What `dvm doctor` says, or why it could not be asked. */
async function doctor(extensionPath: string): Promise<string> {
  if (!vscode.workspace.isTrusted) return 'not asked: the folder is not trusted';
  const { path, origin } = await findInterpreter(vscode.workspace.workspaceFolders?.[0]);
  return new Promise((resolve) => {
    const options = { timeout: DOCTOR_MS, windowsHide: true, cwd: extensionPath, env: adapterEnvironment(extensionPath) };
    execFile(path, ['-m', 'dvm_core', 'doctor'], options, (error, stdout, stderr) => {
      const said = stdout.trim() || stderr.trim() || (error ? messageOf(error) : '');
      resolve(`${path} (${origin})\n${said}`);
    });
  });
}

/** The sessions that run, without their programs' names and arguments. */
async function session(sessions: Sessions): Promise<string> {
  const told = sessions.all().map(async (s) => {
    const dvm = JSON.stringify(s.configuration['dvm'] ?? {});
    const status = await sessions.request<Status>('dvm/status', {}, s).catch(() => undefined);
    const facts = status ? `, step ${status.step ?? 0}, ${status.programs ?? 0} programs, on ${status.device ?? 'cpu'}` : '';
    return `${s.configuration.request}, ${sessions.isStopped(s) ? 'stopped' : 'running'}${facts}, dvm: ${dvm}`;
  });
  return (await Promise.all(told)).join('\n');
}
