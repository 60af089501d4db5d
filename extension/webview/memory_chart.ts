// The Memory View's chart: bytes alive by class over time, or buffers by address with arrows. Drawn by ECharts.
import { CustomChart, LineChart, LinesChart } from 'echarts/charts';
import {
  AriaComponent,
  DataZoomComponent,
  GridComponent,
  LegendComponent,
  MarkLineComponent,
  TooltipComponent,
} from 'echarts/components';
import * as echarts from 'echarts/core';
import * as l10n from '@vscode/l10n';
import { CanvasRenderer, SVGRenderer } from 'echarts/renderers';
import type { MemoryBlock, MemoryViewAnswer } from '../src/protocol';
import { bytes, count } from '../src/text';
import { classColour, className, colour, highContrast } from './look';

echarts.use([
  CustomChart,
  LineChart,
  LinesChart,
  AriaComponent,
  DataZoomComponent,
  GridComponent,
  LegendComponent,
  MarkLineComponent,
  TooltipComponent,
  CanvasRenderer,
  SVGRenderer,
]);

export type Mode = 'time' | 'address';
type Option = echarts.EChartsCoreOption;

/** What is drawn. `view`: the stretch looked at; `whole`: the log, for the minimap; `other`: a step to compare with. */
export interface Drawn {
  view: MemoryViewAnswer;
  whole: MemoryViewAnswer;
  mode: Mode;
  other?: { name: string; points: [number, number][] } | undefined;
}

const BAR = 20; // height of the minimap

/** Curves of the whole log, those of the stretch in their place: the stretch has more detail. */
export function merged(whole: MemoryViewAnswer, view: MemoryViewAnswer, name: string): [number, number][] {
  const [first, last] = view.range;
  const points = (of: MemoryViewAnswer): [number, number][] => {
    const values = of.bytes[of.classes.indexOf(name)];
    return of.times.map((time, i) => [time, values?.[i] ?? 0]);
  };
  const outside = whole === view ? [] : points(whole);
  const inside = points(view);
  const end: [number, number] = [last, inside.at(-1)?.[1] ?? 0];
  return [...outside.filter(([t]) => t < first), ...inside, end, ...outside.filter(([t]) => t > last)];
}

export const totals = (view: MemoryViewAnswer): [number, number][] =>
  view.times.map((time, i) => [time, view.bytes.reduce((sum, of) => sum + (of[i] ?? 0), 0)]);

/** The power of two at or above a number of bytes: ticks at 512 B, 1 KiB, not at 500 B and 1000 B. */
const roundBytes = (n: number): number => 2 ** Math.max(0, Math.ceil(Math.log2(Math.max(1, n))));

export function option(drawn: Drawn): Option {
  const { view, whole, mode } = drawn;
  const ink = colour('foreground');
  const rule = colour('editorIndentGuide-background1', colour('panel-border'));
  return {
    animation: false,
    aria: { enabled: true, decal: { show: highContrast() } },
    textStyle: { color: ink, fontFamily: colour('font-family', 'sans-serif') },
    legend: {
      top: 0,
      left: 70,
      textStyle: { color: ink },
      itemHeight: 10,
      itemWidth: 14,
      data: whole.classes,
      formatter: className,
    },
    grid: { left: 70, right: 16, top: 30, bottom: BAR + 46 },
    tooltip: {
      trigger: mode === 'time' ? 'axis' : 'item',
      backgroundColor: colour('editorHoverWidget-background'),
      borderColor: colour('editorHoverWidget-border'),
      textStyle: { color: colour('editorHoverWidget-foreground', ink) },
      confine: true,
      ...(mode === 'time' ? { formatter: (at: unknown) => timeTip(at as Tip[], whole.classes) } : {}),
    },
    xAxis: {
      type: 'value',
      min: whole.whole[0],
      max: whole.whole[1],
      name: l10n.t('instructions run'),
      nameLocation: 'middle',
      nameGap: 24,
      nameTextStyle: { color: colour('descriptionForeground') },
      axisLabel: { formatter: (v: number) => count(v), color: ink, hideOverlap: true },
      splitLine: { show: false },
      axisLine: { lineStyle: { color: rule } },
    },
    yAxis: {
      type: 'value',
      min: 0,
      ...(mode === 'address' ? { max: Math.max(1, view.height) } : {}),
      interval: roundBytes((mode === 'address' ? view.height : view.peak.bytes) / 4),
      axisLabel: { formatter: (v: number) => bytes(v), color: ink, showMaxLabel: mode === 'time' },
      splitLine: { lineStyle: { color: rule } },
    },
    dataZoom: [
      { type: 'inside', startValue: view.range[0], endValue: view.range[1], filterMode: 'none', throttle: 50 },
      {
        type: 'slider',
        startValue: view.range[0],
        endValue: view.range[1],
        filterMode: 'none',
        height: BAR,
        bottom: 6,
        brushSelect: false,
        showDetail: false,
        borderColor: rule,
        fillerColor: colour('scrollbarSlider-background', 'rgba(128,128,128,.3)'),
        dataBackground: shadow(),
        selectedDataBackground: shadow(),
      },
    ],
    series: mode === 'time' ? curves(drawn, ink) : blocks(drawn),
  };
}

const shadow = (): object => ({
  lineStyle: { color: colour('descriptionForeground'), width: 1 },
  areaStyle: { color: colour('descriptionForeground'), opacity: 0.25 },
});

interface Tip {
  seriesName: string;
  value: [number, number];
  marker: string;
}

function timeTip(at: Tip[], classes: readonly string[]): string {
  const own = at.filter((t) => classes.includes(t.seriesName));
  const all = own.reduce((sum, t) => sum + t.value[1], 0);
  const lines = [...own]
    .reverse()
    .filter((t) => t.value[1])
    .map((t) => `${t.marker}${text(className(t.seriesName))} ${bytes(t.value[1])}`);
  const others = at.filter((t) => !own.includes(t)).map((t) => `${t.marker}${text(t.seriesName)} ${bytes(t.value[1])}`);
  return [l10n.t`<b>${bytes(all)}</b> at ${count(at[0]?.value[0] ?? 0)}`, ...lines, ...others].join('<br>');
}

const text = (s: string): string => s.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);

function curves({ view, whole, other }: Drawn, ink: string): object[] {
  const made: object[] = whole.classes.map((name, i) => ({
    type: 'line',
    name,
    stack: 'bytes',
    step: 'end',
    symbol: 'none',
    sampling: 'max',
    data: merged(whole, view, name),
    color: classColour(name),
    lineStyle: { width: 0 },
    areaStyle: { opacity: 0.85 },
    emphasis: { disabled: true },
    ...(i === 0 && view.peak.bytes ? { markLine: peakLine(view, ink) } : {}),
  }));
  if (other)
    made.push({
      type: 'line',
      name: other.name,
      step: 'end',
      symbol: 'none',
      data: other.points,
      color: ink,
      lineStyle: { width: 1.5, type: 'dashed' },
    });
  return made;
}

const peakLine = (view: MemoryViewAnswer, ink: string): object => ({
  silent: true,
  symbol: 'none',
  lineStyle: { color: ink, type: 'dashed' },
  label: { formatter: l10n.t`peak ${bytes(view.peak.bytes)}`, color: ink, position: 'end', distance: 2 },
  data: [{ xAxis: view.peak.at }],
});

const middle = (b: MemoryBlock): number => b.low + b.bytes / 2;

function blocks({ view, whole }: Drawn): object[] {
  const chosen = view.selected;
  const [edge, framed] = [colour('editor-background'), colour('focusBorder')];
  const made: object[] = whole.classes.map((name) => {
    const own = view.buffers.filter((b) => b.class === name);
    return {
      type: 'custom',
      name,
      color: classColour(name),
      data: own.map((b) => [b.born, b.freed ?? whole.whole[1], b.low, b.low + b.bytes, b.id]),
      encode: { x: [0, 1], y: [2, 3] },
      dimensions: ['born', 'freed', 'low', 'high', 'id'],
      renderItem: block(classColour(name), edge, framed, chosen?.id),
      clip: true,
      tooltip: {
        formatter: ({ dataIndex, value }: { dataIndex: number; value: number[] }) =>
          `<b>${text(`${own[dataIndex]?.name} ${own[dataIndex]?.type}`)}</b><br>` +
          `${bytes((value[3] ?? 0) - (value[2] ?? 0))}, ${className(name)}<br>` +
          l10n.t`instructions ${count(value[0] ?? 0)} to ${count(value[1] ?? 0)}`,
      },
    };
  });
  if (chosen) made.push(...arrows(chosen));
  return made;
}

interface Api {
  value(dimension: number): number;
  coord(at: [number, number]): [number, number];
  style(): object;
}

/** Draws a buffer. Its style is made here: what ECharts would give for each of 2,000 takes longer than they do. Patterns are ECharts' own. */
function block(fill: string, edge: string, framed: string, chosen: number | undefined): (_: unknown, api: Api) => object {
  const patterned = highContrast();
  return (_, api) => {
    const [left, top] = api.coord([api.value(0), api.value(3)]);
    const [right, bottom] = api.coord([api.value(1), api.value(2)]);
    const shape = { x: left, y: top, width: Math.max(1, right - left), height: Math.max(1, bottom - top) };
    const stroke = api.value(4) === chosen ? framed : edge;
    const lineWidth = shape.width > 4 && shape.height > 4 ? 1 : 0;
    return { type: 'rect', shape, style: { ...(patterned ? api.style() : {}), fill, stroke, lineWidth } };
  };
}

/** Data flow as solid arrows, the same memory handed out again as dashed ones. */
function arrows(chosen: NonNullable<MemoryViewAnswer['selected']>): object[] {
  const line = (name: string, type: 'solid' | 'dashed', pairs: [MemoryBlock, MemoryBlock][]): object => ({
    type: 'lines',
    name,
    coordinateSystem: 'cartesian2d',
    symbol: ['none', 'arrow'],
    symbolSize: 8,
    silent: true,
    z: 5,
    lineStyle: { color: colour('foreground'), width: 1.5, type, curveness: 0.15, opacity: 0.9 },
    data: pairs.map(([a, b]) => ({
      coords: [
        [Math.min(a.freed ?? b.born, b.born), middle(a)],
        [b.born, middle(b)],
      ],
    })),
  });
  const flow: [MemoryBlock, MemoryBlock][] = [
    ...chosen.operands.map((o): [MemoryBlock, MemoryBlock] => [{ ...o, freed: o.born }, chosen]),
    ...chosen.readers.map((r): [MemoryBlock, MemoryBlock] => [{ ...chosen, freed: chosen.born }, r]),
  ];
  const reuse: [MemoryBlock, MemoryBlock][] = [
    ...(chosen.before ? [[chosen.before, chosen] as [MemoryBlock, MemoryBlock]] : []),
    ...(chosen.after ? [[chosen, chosen.after] as [MemoryBlock, MemoryBlock]] : []),
  ];
  return [line(l10n.t('data flow'), 'solid', flow), line(l10n.t('reuse'), 'dashed', reuse)];
}

/** The chart as a picture. */
export function picture(format: 'png' | 'svg', drawn: Drawn, width: number, height: number): string {
  const box = document.createElement('div');
  const chart = echarts.init(box, undefined, {
    renderer: format === 'svg' ? 'svg' : 'canvas',
    ssr: format === 'svg',
    width,
    height,
  });
  chart.setOption({ ...option(drawn), backgroundColor: colour('editor-background') });
  const made =
    format === 'svg'
      ? chart.renderToSVGString()
      : chart.getDataURL({ type: 'png', pixelRatio: 2 }).replace(/^data:image\/png;base64,/, '');
  chart.dispose();
  return made;
}

export { echarts };
