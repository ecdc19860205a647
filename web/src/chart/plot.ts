// What uPlot is given for a chart.

import uPlot from "uplot";
import { drawCandles } from "./candles";
import type { ChartInput } from "./input";

export const HEIGHT = 340;

/** The colours of the style sheet: `--series-0` and so on. */
export const COLOURS = 8;

/** Where each point is on the y axis: bars of several series stand on each other. */
export function heightsOf({ kind, series }: ChartInput): (number | null)[][] {
  if (kind !== "bars") return series.map(({ values }) => values);
  const below = new Array<number>(series[0]?.values.length ?? 0).fill(0);
  return series.map(({ values }) => values.map((value, index) => (value === null ? null : (below[index]! += value))));
}

/** The rows of uPlot. The highest bars come first, so that those below stand before them; candles have their ends as rows. */
export function dataOf(input: ChartInput, heights: (number | null)[][]): uPlot.AlignedData {
  const ends = input.series.flatMap(({ candles }) => (candles ? [candles.high, candles.low] : []));
  return [input.x, ...(input.kind === "bars" ? heights.toReversed() : heights), ...ends];
}

export function optionsOf(input: ChartInput, element: HTMLElement, onCursor: () => void): uPlot.Options {
  const { kind, series, zone = "UTC" } = input;
  const style = getComputedStyle(element);
  // A colour of a custom property is resolved where it is used.
  const colour = (name: string) => {
    element.style.setProperty("outline-color", `var(${name})`);
    const resolved = style.outlineColor;
    element.style.removeProperty("outline-color");
    return resolved;
  };
  const [ink, line] = [colour("--quiet"), colour("--line")];
  const colours = series.map((_, index) => colour(`--series-${index % COLOURS}`));
  const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 }, font: `12px ${style.fontFamily}` };
  const unseen: uPlot.Series = { paths: () => null, points: { show: false } };
  const shapes: Record<ChartInput["kind"], (colour: string) => uPlot.Series> = {
    bars: (fill) => ({ fill, stroke: fill, width: 0, paths: uPlot.paths.bars!({ size: [0.8, 60] }), points: { show: false } }),
    // Browsers draw many lines far faster when they are not wider than a pixel.
    lines: (stroke) => ({ stroke, width: input.x.length > 2000 ? 1 / devicePixelRatio : 1.5, spanGaps: true, points: { show: input.x.length < 400, size: 5 } }),
    candles: () => unseen,
  };
  const drawn = colours.map((colour) => shapes[kind](colour));
  const wide = (min: number, max: number): [number, number] => [min - (max - min || 3600) * 0.02, max + (max - min || 3600) * 0.02];
  return {
    width: element.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    tzDate: (at) => uPlot.tzDate(new Date(at * 1000), zone === "UTC" ? "Etc/UTC" : zone),
    cursor: { drag: { x: false, y: false, setScale: false }, points: { show: kind === "lines", size: 8 } },
    scales: {
      x: kind === "lines" ? {} : { range: (_, min, max) => wide(min, max) },
      y: kind === "bars" ? { range: (_, min, max) => [Math.min(min * 1.05, 0), Math.max(max * 1.05, 0) || 1] } : {},
    },
    axes: [
      { ...axis, values: TIMES },
      { ...axis, size: 64, values: (_, values) => values.map((value) => compact.format(value)) },
    ],
    series: [{}, ...(kind === "bars" ? drawn.reverse() : drawn), ...series.flatMap(({ candles }) => (candles ? [unseen, unseen] : []))],
    hooks: {
      setCursor: [onCursor],
      draw: kind === "candles" ? [(made) => drawCandles(made, series, colours)] : [],
    },
  };
}

/** From the coarsest: the least distance of two marks in seconds, their text, and a second line where a year, a day or a minute begins. */
const TIMES = [
  [31_536_000, "{YYYY}", null, null, null, null, null, null, 1],
  [2_419_200, "{MMM}", "\n{YYYY}", null, null, null, null, null, 1],
  [86_400, "{MMM} {D}", "\n{YYYY}", null, null, null, null, null, 1],
  [60, "{HH}:{mm}", "\n{YYYY}-{MM}-{DD}", null, "\n{MMM} {D}", null, null, null, 1],
  [0.001, "{HH}:{mm}:{ss}", "\n{YYYY}-{MM}-{DD}", null, "\n{MMM} {D}", null, null, null, 1],
] as (string | number | null)[][];

const compact = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 4 });
