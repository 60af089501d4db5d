// The document of a tensor's panel: everything in it is named for a screen reader.
import * as l10n from '@vscode/l10n';
import type * as vscode from 'vscode';
import { escapeHtml, pageHtml } from './page';

export function tensorPage(webview: vscode.Webview, extension: vscode.Uri, name: string): string {
  const body = `<main>
<header><h1>${escapeHtml(name)}</h1><span id="type" class="figure"></span><span id="when"></span><a id="place" href="#" hidden></a><span class="gap"></span>
<vscode-button id="watch" hidden>${escapeHtml(l10n.t('Watch It'))}</vscode-button></header>
<p id="note" role="status"></p>
<div id="tools" role="toolbar" aria-label="${escapeHtml(l10n.t('Tensor'))}">
<vscode-single-select id="mode" label="${escapeHtml(l10n.t('Show as'))}"><vscode-option value="map">${escapeHtml(l10n.t('Heat map'))}</vscode-option>
<vscode-option value="table">${escapeHtml(l10n.t('Table'))}</vscode-option></vscode-single-select>
<span id="zoom"><vscode-button id="in" secondary aria-label="${escapeHtml(l10n.t('Zoom in'))}">+</vscode-button><vscode-button id="out" secondary
 aria-label="${escapeHtml(l10n.t('Zoom out'))}">−</vscode-button><vscode-button id="whole" secondary>${escapeHtml(l10n.t('Whole'))}</vscode-button></span>
<vscode-textfield id="goto" placeholder="${escapeHtml(l10n.t('row, column'))}" aria-label="${escapeHtml(l10n.t('Go to row, column'))}" hidden></vscode-textfield>
<vscode-single-select id="partner" label="${escapeHtml(l10n.t('Compare with'))}"></vscode-single-select>
<span id="limits" hidden><label>${escapeHtml(l10n.t('over'))} <vscode-textfield id="tolerance" value="0" aria-label="${escapeHtml(l10n.t('Tolerance, absolute'))}"></vscode-textfield></label>
<label>+ <vscode-textfield id="relative" value="0" aria-label="${escapeHtml(l10n.t('Tolerance relative to the other'))}"></vscode-textfield> · |other|</label></span>
<span class="gap"></span>
<span id="take"><vscode-button id="numpy" secondary>${escapeHtml(l10n.t('Copy as NumPy'))}</vscode-button><vscode-button id="tsv" secondary
 title="${escapeHtml(l10n.t('Copy as TSV'))}" aria-label="${escapeHtml(l10n.t('Copy as TSV'))}">TSV</vscode-button>
<vscode-button id="npy" secondary>${escapeHtml(l10n.t('Export .npy'))}</vscode-button></span></div>
<div id="axes" role="group" aria-label="${escapeHtml(l10n.t('Axes and indices'))}"></div>
<div id="body"><section id="picture" aria-label="${escapeHtml(l10n.t('Values'))}">
<canvas id="map" tabindex="0" role="img" aria-describedby="cell" aria-label="${escapeHtml(l10n.t('Heat map. Arrow keys read cells, plus and minus zoom, 0 shows all, Enter opens the table there.'))}"></canvas>
<div id="table" hidden></div>
<div id="legend"><span id="low" class="figure"></span><canvas id="ramp" width="120" height="10" aria-hidden="true"></canvas><span id="high" class="figure"></span>
<span id="scale"></span></div>
<p id="bad" class="bad"></p><p id="cell" class="figure" aria-live="polite"></p></section>
<section id="facts" aria-label="${escapeHtml(l10n.t('Figures'))}">
<section id="compared" hidden><h2 id="comparedTitle"></h2><p id="comparedSteps" class="placeholder" hidden></p><table aria-labelledby="comparedTitle"><tbody id="differences"></tbody></table></section>
<h2 id="statsTitle">${escapeHtml(l10n.t('Statistics'))}</h2><table aria-labelledby="statsTitle"><tbody id="stats"></tbody></table>
<h2>${escapeHtml(l10n.t('Histogram of |x|, in powers of two'))}</h2><div id="bars" role="img" aria-label="${escapeHtml(l10n.t('Histogram'))}"></div>
<section id="past" hidden><h2>${escapeHtml(l10n.t('History of'))} <vscode-single-select id="measure" label="${escapeHtml(l10n.t('Statistic of the history'))}"></vscode-single-select></h2>
<div id="line" role="img" aria-label="${escapeHtml(l10n.t('History'))}"></div>
<div id="steps" hidden><label for="step">${escapeHtml(l10n.t('step'))}</label><input id="step" type="range" min="0" value="0"><output id="at" for="step"></output>
<vscode-button id="now" secondary>${escapeHtml(l10n.t('Now'))}</vscode-button></div></section>
</section></div>
</main>`;
  return pageHtml(webview, extension, { title: l10n.t`Tensor ${name}`, script: 'tensor', sheet: true, body });
}
