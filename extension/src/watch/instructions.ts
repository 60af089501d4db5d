// Watching what an instruction makes: chosen among those around the stop, as the Disassembly view shows them, or named by the Memory View.
import * as l10n from '@vscode/l10n';
import * as vscode from 'vscode';
import type { Place } from '../protocol';
import type { Sessions } from '../sessions';
import { partsOf } from './address';
import type { WatchModel } from './model';

/** An instruction's result: as the variable it is called by where it has one, for that holds over sessions; else by its number. */
export interface Result {
  program: number;
  instruction: number;
  name: string;
  place?: Place | undefined;
}

interface Row {
  address: string;
  instruction: string;
  presentationHint?: string;
}

const [BEFORE, AFTER] = [200, 50];

/** Adds a watch of it to the session in view; gives the watch's key. */
export async function watchResult(model: WatchModel, sessions: Sessions, result: Result): Promise<string> {
  const { program, instruction, name, place } = result;
  if (/^[A-Za-z_][\w.]*$/.test(name) && place) return model.add({ expression: name, path: place.path, line: place.line });
  const session = sessions.current();
  if (!session) throw new Error(l10n.t('no DVM debug session is running'));
  return model.add({ expression: name, of: { program, instruction, session: session.id } });
}

/** Instructions around the stop, newest first; those that were not computed can be watched, too. */
export async function chooseInstruction(sessions: Sessions): Promise<Result | undefined> {
  const item = vscode.debug.activeStackItem;
  if (!(item instanceof vscode.DebugStackFrame) || item.session.type !== 'dvm')
    throw new Error(l10n.t('stop on a tensor line first: the instructions around the stop are listed'));
  const args = { threadId: item.threadId, startFrame: 0, levels: 100 };
  type Frames = { stackFrames: { id: number; instructionPointerReference?: string }[] };
  const { stackFrames } = await sessions.request<Frames>('stackTrace', args, item.session);
  const at =
    stackFrames.find((f) => f.id === item.frameId)?.instructionPointerReference ??
    stackFrames.find((f) => f.instructionPointerReference)?.instructionPointerReference;
  if (!at) throw new Error(l10n.t('the stop is in no tensor program'));
  const asked = { memoryReference: at, instructionOffset: -BEFORE, instructionCount: BEFORE + AFTER };
  const { instructions } = await sessions.request<{ instructions: Row[] }>('disassemble', asked, item.session);
  const items = instructions.flatMap((row) => {
    const parts = partsOf(row.address);
    const name = /^(%\d+) = /.exec(row.instruction)?.[1];
    return parts && name && row.presentationHint !== 'invalid'
      ? [
          {
            label: row.instruction,
            description: row.address === at ? l10n.t('where it stopped') : '',
            result: { ...parts, name },
          },
        ]
      : [];
  });
  if (!items.length) throw new Error(l10n.t('no instruction around the stop has a result'));
  const chosen = await vscode.window.showQuickPick(items.reverse(), { title: l10n.t('Watch the result of an instruction') });
  return chosen?.result;
}
