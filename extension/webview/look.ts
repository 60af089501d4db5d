// What the pages share of the theme: its colours for charts, and which colour a class of memory has.
import * as l10n from '@vscode/l10n';

export const colour = (name: string, otherwise = '#888'): string =>
  getComputedStyle(document.body).getPropertyValue(`--vscode-${name}`).trim() || otherwise;

const CLASS_COLOURS: Record<string, string> = {
  parameter: 'charts-blue',
  optimizer: 'charts-purple',
  gradient: 'charts-red',
  activation: 'charts-green',
  workspace: 'charts-orange',
  snapshot: 'charts-yellow',
};

/** A class of memory in words. */
const CLASS_NAMES: Record<string, string> = {
  parameter: l10n.t('parameter'),
  optimizer: l10n.t('optimizer'),
  gradient: l10n.t('gradient'),
  activation: l10n.t('activation'),
  workspace: l10n.t('workspace'),
  snapshot: l10n.t('snapshot'),
};
export const className = (name: string): string => CLASS_NAMES[name] ?? name;

export const classColour = (name: string): string => colour(CLASS_COLOURS[name] ?? 'descriptionForeground');

/** High contrast themes have patterns as well as colours. */
export const highContrast = (): boolean => document.body.className.includes('high-contrast');

/** Calls `draw` when the user has chosen another theme. */
export function onTheme(draw: () => void): void {
  new MutationObserver(draw).observe(document.body, { attributes: true, attributeFilter: ['class'] });
}
