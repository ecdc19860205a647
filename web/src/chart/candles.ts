// Draws candles: a line from the least to the greatest value, and a body from the first to the last. The body of a fall is filled.

import type uPlot from "uplot";
import type { Series } from "./input";

export function drawCandles(made: uPlot, series: Series[], colours: string[]): void {
  const { ctx, bbox } = made;
  const x = made.data[0];
  const [from, to] = made.series[0]!.idxs ?? [0, -1];
  const half = halfWidth(made, x);
  const line = Math.max(Math.round(devicePixelRatio), 1);
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.lineWidth = line;
  for (const [number, { values, candles }] of series.entries()) {
    const lines = new Path2D();
    const falls = new Path2D();
    for (let index = from; index <= to; index++) {
      const [open, high, low, close] = [candles!.open[index], candles!.high[index], candles!.low[index], values[index]];
      if (open == null || high == null || low == null || close == null) continue;
      const middle = Math.round(made.valToPos(x[index]!, "x", true)) + (line % 2) / 2;
      const at = (value: number) => Math.round(made.valToPos(value, "y", true)) + (line % 2) / 2;
      const [top, bottom] = [at(Math.max(open, close)), at(Math.min(open, close))];
      lines.moveTo(middle, at(high));
      lines.lineTo(middle, top);
      lines.moveTo(middle, bottom);
      lines.lineTo(middle, at(low));
      const body = close < open ? falls : lines;
      body.rect(middle - half, top, half * 2, Math.max(bottom - top, line));
    }
    ctx.strokeStyle = ctx.fillStyle = colours[number]!;
    ctx.stroke(lines);
    ctx.fill(falls);
  }
  ctx.restore();
}

/** Half of the width of a body, in pixels of the canvas: neighbours do not touch. */
function halfWidth(made: uPlot, x: ArrayLike<number>): number {
  let least = Infinity;
  for (let index = 1; index < x.length; index++) least = Math.min(least, x[index]! - x[index - 1]!);
  const { min, max } = made.scales["x"]!;
  const room = Number.isFinite(least) ? (least / (max! - min!)) * made.bbox.width : made.bbox.width;
  return Math.min(Math.max(Math.floor(room * 0.35), 1), 20 * devicePixelRatio);
}
