// What a chart shows. Whatever can say it in this shape can be drawn: items that are loaded, or summaries of a server.

export interface ChartInput {
  /** Bars of several series stand on each other. */
  kind: "bars" | "lines" | "candles";
  /** What it shows, in a sentence. */
  label: string;
  /** What it is made of, and what it leaves out. */
  madeOf: string;
  /** Moments in seconds, ascending. */
  x: number[];
  /** The time zone that the axis has. Default: UTC. */
  zone?: string;
  series: Series[];
}

export interface Series {
  name: string;
  /** A value for each moment, or null. */
  values: (number | null)[];
  /** Of candles, whose `values` are the last values. */
  candles?: Record<"open" | "high" | "low", (number | null)[]>;
}

/** What a point is: its words, and the address that it leads to. */
export interface Point {
  words: string;
  address?: string | undefined;
}

/** Of the series and the moment with these numbers. */
export type PointOf = (series: number, index: number) => Point;

export interface Drawing {
  input: ChartInput;
  pointOf: PointOf;
}
