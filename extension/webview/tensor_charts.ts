// Histogram and history of a tensor page, drawn by ECharts in the theme's colours.
import * as l10n from '@vscode/l10n';
import { BarChart, LineChart } from 'echarts/charts';
import { GridComponent, MarkLineComponent, TooltipComponent } from 'echarts/components';
import * as echarts from 'echarts/core';
import { CanvasRenderer } from 'echarts/renderers';
import type { Stats } from '../src/protocol';
import { count, notFinite, num, short } from '../src/text';
import { colour } from './look';

echarts.use([BarChart, LineChart, GridComponent, MarkLineComponent, TooltipComponent, CanvasRenderer]);

/** What a history can be drawn of. */
export const MEASURES: Record<string, (s: Stats) => number> = {
  mean: (s) => num(s.mean),
  std: (s) => num(s.std),
  'root mean square': (s) => Math.hypot(num(s.mean), num(s.std)),
  min: (s) => num(s.min),
  max: (s) => num(s.max),
  zeros: (s) => s.zero ?? 0,
  'NaN and Inf': (s) => (s.nan ?? 0) + (s.pos_inf ?? 0) + (s.neg_inf ?? 0),
};
const MEASURE_TEXTS: Record<string, string> = {
  'root mean square': l10n.t('root mean square'),
  zeros: l10n.t('zeros'),
  'NaN and Inf': l10n.t('NaN and Inf'),
};
export const measureText = (measure: string): string => MEASURE_TEXTS[measure] ?? measure;

const common = (): object => ({
  animation: false,
  textStyle: { color: colour('foreground'), fontFamily: colour('font-family', 'sans-serif') },
  tooltip: {
    trigger: 'axis',
    confine: true,
    transitionDuration: 0,
    backgroundColor: colour('editorHoverWidget-background'),
    borderColor: colour('editorHoverWidget-border'),
    textStyle: { color: colour('editorHoverWidget-foreground', colour('foreground')) },
  },
});
const ruled = (): object => ({ lineStyle: { color: colour('editorIndentGuide-background1', colour('panel-border')) } });

const charts = new Map<HTMLElement, echarts.ECharts>();
function chartIn(box: HTMLElement): echarts.ECharts {
  const known = charts.get(box);
  if (known) return known;
  const chart = echarts.init(box);
  // A change is drawn at once; the ten frames that ECharts looks for more of it each have the window laid out and painted.
  chart.getZr().setSleepAfterStill(1);
  charts.set(box, chart);
  new ResizeObserver(() => chart.resize()).observe(box);
  return chart;
}

/** The lower edge of a bin: they are powers of two of |x|, the first from 0, the last without end. */
const edge = (bin: number): number => (bin ? 2 ** (bin - 25) : 0);

/** How many elements are how large; bins from the first to the last that has any. */
export function drawHistogram(box: HTMLElement, stats: Stats): void {
  const all = stats.histogram ?? [];
  const first = Math.max(0, all.findIndex(Boolean) - 1);
  const last = Math.min(all.length, all.reduce((at, n, i) => (n ? i : at), 0) + 2);
  const bins = all.slice(first, last);
  const range = (i: number): string =>
    i + 1 < all.length ? l10n.t`|x| from ${short(edge(i))} to ${short(edge(i + 1))}` : l10n.t`|x| from ${short(edge(i))} on`;
  chartIn(box).setOption(
    {
      ...common(),
      grid: { left: 8, right: 8, top: 6, bottom: 20 },
      xAxis: {
        type: 'category',
        data: bins.map((_, i) => short(edge(first + i))),
        axisTick: { show: false },
        axisLine: ruled(),
        axisLabel: { color: colour('descriptionForeground'), interval: Math.max(0, Math.ceil(bins.length / 5) - 1) },
      },
      yAxis: { type: 'value', show: false },
      series: [
        {
          type: 'bar',
          data: bins,
          barCategoryGap: '8%',
          itemStyle: { color: colour('charts-blue') },
          emphasis: { disabled: true },
        },
      ],
      tooltip: {
        ...(common() as { tooltip: object }).tooltip,
        formatter: ([at]: { dataIndex: number; value: number }[]) =>
          at ? `${range(first + at.dataIndex)}: <b>${count(at.value)}</b>` : '',
      },
    },
    { notMerge: true },
  );
  const most = bins.length ? Math.max(...bins) : 0;
  const fullest = first + bins.indexOf(most);
  const said = most ? l10n.t`Histogram of sizes; most, ${count(most)}, have ${range(fullest)}` : l10n.t('No histogram');
  box.setAttribute('aria-label', said);
}

/** A number of an axis, with as many digits as tell it from its neighbours. */
function apart(v: number, all: readonly number[]): string {
  const span = all.length ? Math.max(...all) - Math.min(...all) : 0;
  const digits = span && v ? Math.ceil(Math.log10(Math.abs(v) / span)) + 2 : 3;
  return digits <= 3 ? short(v) : String(Number(v.toPrecision(Math.min(digits, 8))));
}

/** One statistic over steps; where it is not finite, a triangle on the floor. `shown`: the step looked at; `kept`: steps that can be shown. */
export function drawHistory(box: HTMLElement, steps: number[], stats: Stats[], measure: string, shown: number | undefined): void {
  const of = MEASURES[measure] ?? MEASURES['mean'];
  const values = stats.map((s) => (of ? of(s) : NaN));
  const finite = values.filter(Number.isFinite);
  const floor = finite.length ? Math.min(...finite) : 0;
  chartIn(box).setOption(
    {
      ...common(),
      grid: { left: 56, right: 12, top: 8, bottom: 22 },
      xAxis: {
        type: 'value',
        min: 'dataMin',
        max: 'dataMax',
        splitLine: { show: false },
        axisLine: ruled(),
        axisLabel: { color: colour('descriptionForeground'), hideOverlap: true, formatter: (v: number) => count(v) },
        splitNumber: 3,
        minInterval: 1,
      },
      yAxis: {
        type: 'value',
        scale: true,
        splitNumber: 2,
        splitLine: ruled(),
        axisLabel: { color: colour('descriptionForeground'), formatter: (v: number) => apart(v, finite) },
      },
      series: [
        {
          type: 'line',
          symbol: 'none',
          data: values.map((v, i) => [steps[i], Number.isFinite(v) ? v : null]),
          lineStyle: { color: colour('charts-blue'), width: 1.5 },
          itemStyle: { color: colour('charts-blue') },
          ...(shown === undefined
            ? {}
            : {
                markLine: {
                  silent: true,
                  symbol: 'none',
                  label: { show: false },
                  lineStyle: { color: colour('foreground'), type: 'dashed' },
                  data: [{ xAxis: shown }],
                },
              }),
        },
        {
          type: 'line',
          symbol: 'triangle',
          symbolSize: 8,
          showAllSymbol: true,
          lineStyle: { width: 0 },
          itemStyle: { color: colour('dvm-notFinite') },
          data: stats.flatMap((s, i) => (notFinite(s) ? [[steps[i], floor]] : [])),
        },
      ],
      tooltip: {
        ...(common() as { tooltip: object }).tooltip,
        formatter: ([at]: { value: [number, number] }[]) => {
          const i = at ? steps.lastIndexOf(at.value[0]) : -1;
          const s = stats[i];
          if (!s) return '';
          return `${l10n.t`step ${count(steps[i] ?? 0)}`}: <b>${short(values[i])}</b>${notFinite(s) ? `<br>${notFinite(s)}` : ''}`;
        },
      },
    },
    { notMerge: true },
  );
  const last = values.at(-1);
  const [what, many] = [measureText(measure), count(values.length)];
  box.setAttribute(
    'aria-label',
    finite.length
      ? l10n.t`${what} over ${many} steps: from ${short(floor)} to ${short(Math.max(...finite))}, now ${short(last)}`
      : l10n.t`${what} over ${many} steps: never finite`,
  );
}

/** Calls `go` with the step that was clicked in a history. */
export function onHistoryClick(box: HTMLElement, go: (step: number) => void): void {
  const chart = chartIn(box);
  chart.getZr().on('click', (e: { offsetX: number; offsetY: number }) => {
    const at = chart.convertFromPixel({ gridIndex: 0 }, [e.offsetX, e.offsetY]) as number[] | undefined;
    if (at?.[0] !== undefined) go(at[0]);
  });
}
