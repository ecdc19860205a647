// Draws a chart. The wheel and the keys + and - zoom, dragging and the arrow keys pan and move, and a click or Enter opens a point.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { go } from "../address";
import type { ChartInput, PointOf } from "./input";
import { moveByPointer, pick, reachOf, step, turn, zoom, type At, type Points } from "./moves";
import { COLOURS, dataOf, HEIGHT, heightsOf, optionsOf } from "./plot";

export default function Chart({ input, pointOf }: { input: ChartInput; pointOf: PointOf }) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(undefined);
  const [at, setAt] = useState<At>();
  const [drawn, setDrawn] = useState(0);
  // The same points are the same list: words of the input may change, and zoom and cursor stay.
  const points = useMemo((): Points => ({ x: input.x, heights: heightsOf(input), solid: input.kind === "bars", reach: reachOf(input.x) }), [input.x]);
  useEffect(() => {
    const draw = () => setDrawn((drawn) => drawn + 1);
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    addEventListener("pagebucket:theme", draw);
    scheme.addEventListener("change", draw);
    return () => {
      removeEventListener("pagebucket:theme", draw);
      scheme.removeEventListener("change", draw);
    };
  }, []);
  useEffect(() => {
    const element = place.current!;
    const pointAtCursor = () => setAt((before) => same(before, pick(made, points)));
    const made = new uPlot(optionsOf(input, element, pointAtCursor), dataOf(input, points.heights), element);
    plot.current = made;
    const stop = moveByPointer(made, () => open(pick(made, points)));
    const watch = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height: HEIGHT }));
    watch.observe(element);
    return () => {
      watch.disconnect();
      stop();
      made.destroy();
      setAt(undefined);
    };
  }, [input.x, drawn]);
  const open = (one: At | undefined) => {
    const address = one && pointOf(one.series, one.index).address;
    if (address !== undefined) go(address);
  };
  const press = (event: KeyboardEvent) => {
    const made = plot.current!;
    if (event.key === "Enter") open(at);
    else if (event.key === "ArrowRight") step(made, points, at, 1, setAt);
    else if (event.key === "ArrowLeft") step(made, points, at, -1, setAt);
    else if (event.key === "ArrowUp" && at) turn(made, points, at, -1, setAt);
    else if (event.key === "ArrowDown" && at) turn(made, points, at, 1, setAt);
    else if (event.key === "+") zoom(made, 0.8, 0.5);
    else if (event.key === "-") zoom(made, 1.25, 0.5);
    else return;
    event.preventDefault();
  };
  const point = at && pointOf(at.series, at.index);
  return (
    <figure class="chart">
      <div
        ref={place}
        class="plot"
        data-keys
        role="application"
        tabIndex={0}
        aria-label={`${input.label}. ${input.madeOf}. The keys left and right move from moment to moment, up and down from series to series, Enter opens a point.`}
        onKeyDown={press}
      />
      <output class="readout" aria-live="polite">
        {point ? point.words : "Point at the chart, or use the arrow keys"}
      </output>
      <figcaption>
        <span class="legend">
          {input.series.map(({ name }, index) => (
            <span key={name}>
              <i data-series={index % COLOURS} />
              {name}
            </span>
          ))}
        </span>
        <span class="quiet">{input.madeOf}</span>
      </figcaption>
    </figure>
  );
}

/** The earlier of two equal points: nothing is drawn for it. */
function same(before: At | undefined, now: At | undefined): At | undefined {
  return before && now && before.series === now.series && before.index === now.index ? before : now;
}
