// What the pages share of the theme: its colours for charts, and which colour a class of memory has.
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

export const classColour = (name: string): string => colour(CLASS_COLOURS[name] ?? 'descriptionForeground');

/** High contrast themes have patterns as well as colours. */
export const highContrast = (): boolean => document.body.className.includes('high-contrast');

/** Calls `draw` when the user has chosen another theme. */
export function onTheme(draw: () => void): void {
  new MutationObserver(draw).observe(document.body, { attributes: true, attributeFilter: ['class'] });
}
