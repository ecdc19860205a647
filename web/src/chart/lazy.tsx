// The chart, which is loaded when it is first needed.

import type { FunctionComponent } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Problem } from "../parts/problem";
import type { ChartInput, PointOf } from "./input";

type Props = { input: ChartInput; pointOf: PointOf };
let loaded: FunctionComponent<Props> | undefined;

export function LazyChart(props: Props) {
  const [Chart, setChart] = useState<FunctionComponent<Props> | undefined>(() => loaded);
  const [error, setError] = useState<unknown>();
  useEffect(() => {
    if (loaded) return;
    import("./chart").then(({ default: chart }) => {
      loaded = chart;
      setChart(() => chart);
    }, setError);
  }, []);
  if (error !== undefined) return <Problem error={error} />;
  return Chart ? <Chart {...props} /> : <p class="quiet loading">…</p>;
}
