// The extension's log: an output channel of its own, no telemetry.
import * as l10n from '@vscode/l10n';
import * as vscode from 'vscode';

export const log = vscode.window.createOutputChannel('DVM Live', { log: true });

/** The text of whatever was thrown. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Runs `work`; an error is shown with its text and logged, never lost. */
export async function guarded<T>(what: string, work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    log.error(`${what}: ${messageOf(error)}`);
    const show = l10n.t('Show Log');
    void vscode.window.showErrorMessage(`${what}: ${messageOf(error)}`, show).then((choice) => choice === show && log.show());
    return undefined;
  }
}
