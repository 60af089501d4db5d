// Has a .msbc file read by `dvm dis`: the verifier is Python's, and a file that breaks it ends another process than the editor's.
import { execFile } from 'node:child_process';
import * as l10n from '@vscode/l10n';
import * as vscode from 'vscode';
import { findInterpreter, probe } from '../launch/interpreter';
import { log, messageOf } from '../log';
import { factsIn, saidBy, type MsbcFacts, type ToMsbcPage } from './facts';

/** Rows of the page's table; a longer program is read with `dvm dis`. */
export const MOST = 20_000;
const PATIENCE_MS = 60_000;
const MOST_TEXT = 256 * 1024 * 1024;
const SHOWN = 500; // characters, in the log

type Refusal = Omit<ToMsbcPage & { type: 'refused' }, 'type'>;

/** The file's facts, or why it has none and what can be done about it. */
export async function readFacts(file: vscode.Uri, cwd: string): Promise<MsbcFacts | Refusal> {
  const cannot = l10n.t('This file cannot be read here');
  if (!vscode.workspace.isTrusted) {
    const text = l10n.t('The file is read by Python, and DVM Live starts no Python in a folder that is not trusted.');
    return { title: cannot, text, remedies: ['trust'] };
  }
  const { path, origin } = await findInterpreter(vscode.workspace.getWorkspaceFolder(file));
  try {
    if (!(await probe(path)).dvm_core) {
      const text = l10n.t`dvm_core is not installed for ${path} (from ${origin}). Install the dvm-live package there, or choose another interpreter.`;
      return { title: cannot, text, remedies: ['interpreter', 'again'] };
    }
  } catch (error) {
    return { title: cannot, text: l10n.t`${messageOf(error)} (from ${origin}).`, remedies: ['interpreter', 'again'] };
  }
  return new Promise((resolve) => {
    const words = ['-m', 'dvm_core', 'dis', '--json', '--most', String(MOST), file.fsPath];
    execFile(path, words, { cwd, timeout: PATIENCE_MS, maxBuffer: MOST_TEXT, windowsHide: true }, (error, stdout, stderr) => {
      if (!error) {
        const facts = factsIn(stdout);
        if (facts) return resolve(facts);
        const text = l10n.t`What ${path} wrote is not what dvm dis writes. Is something printed at its start?`;
        log.warn(`${path} ${words.join(' ')}: ${stdout.slice(0, SHOWN)}`);
        return resolve({ title: cannot, text, remedies: ['again'] });
      }
      log.warn(`${path} ${words.join(' ')}: ${stderr.trim() || error.message}`);
      const said = saidBy(stderr);
      if (said) return resolve({ title: l10n.t('This file is no valid program'), text: said, remedies: ['again'] });
      const why = error.killed
        ? l10n.t`Reading it took longer than ${PATIENCE_MS / 1000} s.`
        : error.signal
          ? l10n.t`What reads it ended by ${error.signal}.`
          : stderr.trim().split('\n').at(-1) || error.message;
      resolve({ title: cannot, text: why, remedies: ['again'] });
    });
  });
}
