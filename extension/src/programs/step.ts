// A step by tile instruction: the editor has buttons for lines and instructions, and none for this.
import * as l10n from '@vscode/l10n';
import * as vscode from 'vscode';
import type { Sessions } from '../sessions';

/** Goes into the fused area that the stop is before, or one tile instruction on, and shows where in the Disassembly view. */
export async function stepTile(sessions: Sessions): Promise<void> {
  const item = vscode.debug.activeStackItem;
  if (!item || item.session.type !== 'dvm' || item.threadId === undefined)
    throw new Error(l10n.t('the program is not stopped: stop on a tensor line or at an instruction first'));
  const stopped = new Promise<void>((resolve) => {
    const listening = sessions.onRunState((session) => {
      if (session.id !== item.session.id || !sessions.isStopped(session)) return;
      listening.dispose();
      resolve();
    });
    setTimeout(() => {
      listening.dispose();
      resolve();
    }, 10_000);
  });
  await sessions.request('stepIn', { threadId: item.threadId, granularity: 'tile' }, item.session);
  await stopped;
  await vscode.commands.executeCommand('debug.action.openDisassemblyView');
}
