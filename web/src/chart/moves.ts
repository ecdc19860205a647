// From point to point of a chart, and across it: by the pointer, by the wheel, and by keys.

import type uPlot from "uplot";

/** A point: the numbers of its series and of its moment. */
export interface At {
  series: number;
  index: number;
}

/** Where the points are: moments, and a height for each series and moment. */
export interface Points {
  x: number[];
  heights: (number | null)[][];
  /** Whether a point takes all the room below it, as a bar does. */
  solid: boolean;
  /** Half of the distance between neighbours, in seconds: where one is missing, there is nothing. */
  reach: number;
}

/** Half of the least distance between two moments. */
export function reachOf(x: number[]): number {
  let least = Infinity;
  for (let index = 1; index < x.length; index++) least = Math.min(least, x[index]! - x[index - 1]!);
  return least / 2;
}

/** Pixels that a pointer may move within a click. */
const STILL = 4;

/** Pixels from a point of a line at which it is still pointed at, however near its neighbours are; and from a bar, which may be thin. */
const NEAR_LINE = 60;
const NEAR_BAR = 3;

/** The point that is nearest to the cursor, unless the cursor is where there is none. */
export function pick(made: uPlot, { x, heights, solid, reach: apart }: Points): At | undefined {
  const { left = -1, top = -1 } = made.cursor;
  if (left < 0 || x.length === 0) return undefined;
  const middle = made.posToIdx(left);
  const reach = solid ? 0 : 60;
  const furthest = Math.max(made.valToPos(made.posToVal(left, "x") + apart, "x") - left, solid ? NEAR_BAR : NEAR_LINE);
  let best: (At & { distance: number }) | undefined;
  // Points near the cursor: a moment may have a value in one series only.
  for (let index = Math.max(middle - reach, 0); index <= Math.min(middle + reach, x.length - 1); index++) {
    const across = made.valToPos(x[index]!, "x") - left;
    if (Math.abs(across) > furthest) continue;
    for (const [series, row] of heights.entries()) {
      const value = row[index];
      if (value === null || value === undefined) continue;
      const below = top - made.valToPos(value, "y");
      // The bar that the cursor is in has the nearest end above it.
      const distance = solid && below < 0 ? 1e6 - below : Math.hypot(across, below * 0.3);
      if (!best || distance < best.distance) best = { series, index, distance };
    }
  }
  return best && { series: best.series, index: best.index };
}

/** To the next moment that has a point: of the same series if it has one there. */
export function step(made: uPlot, points: Points, at: At | undefined, by: 1 | -1, onPoint: (at: At) => void): void {
  const { x, heights } = points;
  let index = at ? at.index + by : by > 0 ? 0 : x.length - 1;
  for (; index >= 0 && index < x.length; index += by) {
    const same = at && heights[at.series]![index] != null ? at.series : undefined;
    const series = same ?? heights.findIndex((row) => row[index] != null);
    if (series >= 0) return moveTo(made, points, { series, index }, onPoint);
  }
}

/** To the next series that has a point at the same moment. */
export function turn(made: uPlot, points: Points, at: At, by: 1 | -1, onPoint: (at: At) => void): void {
  const { heights } = points;
  for (let series = at.series + by; series >= 0 && series < heights.length; series += by)
    if (heights[series]![at.index] != null) return moveTo(made, points, { series, index: at.index }, onPoint);
}

function moveTo(made: uPlot, { x, heights }: Points, point: At, onPoint: (at: At) => void): void {
  const [across, value] = [x[point.index]!, heights[point.series]![point.index]!];
  const show = () => {
    made.setCursor({ left: made.valToPos(across, "x"), top: made.valToPos(value, "y") }, false);
    onPoint(point);
  };
  const { min, max } = made.scales["x"]!;
  if (min == null || max == null || (across >= min && across <= max)) return show();
  // It comes into view first.
  made.setScale("x", { min: across - (max - min) / 2, max: across + (max - min) / 2 });
  requestAnimationFrame(show);
}

export function zoom(made: uPlot, factor: number, around: number): void {
  const { min, max } = made.scales["x"]!;
  if (min == null || max == null) return;
  const middle = min + (max - min) * around;
  made.setScale("x", { min: middle - (middle - min) * factor, max: middle + (max - middle) * factor });
}

/** Zooms by the wheel with Ctrl or after a click into the chart, pans by dragging, and tells of clicks. */
export function moveByPointer(made: uPlot, onClick: () => void): () => void {
  const { over } = made;
  const ending = new AbortController();
  const { signal } = ending;
  let frame = 0;
  let down: { x: number; min: number; max: number; moved: boolean } | undefined;
  over.addEventListener(
    "pointerdown",
    (event) => {
      const { min, max } = made.scales["x"]!;
      if (event.button === 0 && min != null && max != null) down = { x: event.clientX, min, max, moved: false };
    },
    { signal },
  );
  addEventListener(
    "pointermove",
    (event) => {
      if (!down) return;
      const by = event.clientX - down.x;
      down.moved ||= Math.abs(by) > STILL;
      if (!down.moved) return;
      const shift = (-by / over.clientWidth) * (down.max - down.min);
      const scale = { min: down.min + shift, max: down.max + shift };
      // Once a frame, however many moves there are in it.
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(() => made.setScale("x", scale));
    },
    { signal },
  );
  addEventListener(
    "pointerup",
    (event) => {
      if (down && !down.moved) {
        // A touch moves no cursor before its end.
        const { left, top } = over.getBoundingClientRect();
        made.setCursor({ left: event.clientX - left, top: event.clientY - top });
        onClick();
      }
      down = undefined;
    },
    { signal },
  );
  // A touch has become a scroll.
  addEventListener("pointercancel", () => (down = undefined), { signal });
  over.addEventListener("dblclick", () => made.setData(made.data, true), { signal });
  over.addEventListener(
    "wheel",
    (event) => {
      // The page goes on scrolling past a chart.
      if (!event.ctrlKey && !event.metaKey && document.activeElement !== over.closest(".plot")) return;
      event.preventDefault();
      zoom(made, event.deltaY > 0 ? 1.15 : 0.87, event.offsetX / over.clientWidth);
    },
    { signal, passive: false },
  );
  return () => ending.abort();
}
