// The list behind "processId": "${command:pickProcess}".
import { execFile } from 'node:child_process';
import * as l10n from '@vscode/l10n';
import * as vscode from 'vscode';

/** Lets the user choose a running Python process; its id as text, undefined if none was chosen. */
export async function pickProcess(): Promise<string | undefined> {
  const items = listPython().then((found) =>
    found.map((p) => ({ label: p.name, description: String(p.pid), detail: p.command })),
  );
  const chosen = await vscode.window.showQuickPick(items, {
    title: l10n.t('Attach to a Python process'),
    matchOnDescription: true,
    matchOnDetail: true,
  });
  return chosen?.description;
}

function listPython(): Promise<{ pid: number; name: string; command: string }[]> {
  const [program, args] =
    process.platform === 'win32'
      ? [
          'powershell',
          ['-NoProfile', '-Command', 'Get-CimInstance Win32_Process | % { "$($_.ProcessId) $($_.Name) $($_.CommandLine)" }'],
        ]
      : (['ps', ['-A', '-o', 'pid=,comm=,args=']] as const);
  return new Promise((resolve, reject) => {
    execFile(program, [...args], { maxBuffer: 16 << 20 }, (error, stdout) => {
      if (error) reject(new Error(l10n.t`cannot list processes: ${error.message}`));
      else resolve(parseProcesses(stdout));
    });
  });
}

/** Rows `pid name command line` of Python interpreters, newest first; our own adapters are left out. */
export function parseProcesses(text: string): { pid: number; name: string; command: string }[] {
  return text
    .split('\n')
    .map((line) => /^\s*(\d+)\s+(\S+)\s+(.*)$/.exec(line))
    .filter(
      (m): m is RegExpExecArray =>
        m !== null && /python/i.test(`${m[2]} ${m[3]}`) && !/dvm_adapter|debugpy[\\/]adapter/.test(m[3] ?? ''),
    )
    .map((m) => ({ pid: Number(m[1]), name: m[2] ?? '', command: m[3] ?? '' }))
    .reverse();
}
