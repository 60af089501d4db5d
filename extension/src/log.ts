// The extension's log: an output channel of its own, no telemetry.
import * as l10n from '@vscode/l10n';
import * as vscode from 'vscode';

const MOST_LINES = 200;
const channel = vscode.window.createOutputChannel('DVM Live', { log: true });
const lines: string[] = [];

function write(level: 'debug' | 'info' | 'warn' | 'error', text: string): void {
  lines.push(`${new Date().toISOString()} [${level}] ${text}`);
  if (lines.length > MOST_LINES) lines.splice(0, lines.length - MOST_LINES);
  channel[level](text);
}

export const log = {
  channel,
  debug: (text: string): void => write('debug', text),
  info: (text: string): void => write('info', text),
  warn: (text: string): void => write('warn', text),
  error: (text: string): void => write('error', text),
  show: (): void => channel.show(),
  /** The last lines that were written, oldest first. */
  tail: (): readonly string[] => lines,
};

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
