// Charts of summaries: what the items of each span of time add up to.

import type { SummaryPoint } from "@pagebucket/client";
import type { Definition, Summaries } from "../api/catalog";
import { count, moment, number } from "../format";
import { plain } from "../parts/text";
import type { Drawing, Series } from "./input";
import { MOST_SERIES } from "./of-items";

/** What a chart of summaries shows: `member` is `count`, `ohlc` for candles, or a member of a value, such as `sum`. */
export interface Measure {
  /** As addresses have it. That of counts is empty. */
  id: string;
  words: string;
  member: string;
  property?: string;
}

/** What the lengths of spans are called. */
export const LENGTHS: Record<string, string> = {
  "1m": "minute",
  "5m": "5 minutes",
  "15m": "15 minutes",
  "30m": "30 minutes",
  "1h": "hour",
  "4h": "4 hours",
  "1d": "day",
  "1w": "week",
  "1M": "month",
};

const WORDS: Record<string, (name: string) => string> = {
  sum: (name) => `sum of ${name}`,
  ohlc: (name) => `${name} as candles`,
  vwap: (name) => `weighted average of ${name}`,
  min: (name) => `least ${name}`,
  max: (name) => `greatest ${name}`,
};

export function measuresOf({ items, summaries }: Definition): Measure[] {
  if (!summaries) return [];
  return [{ id: "", words: `how many ${items}`, member: "count" }, ...summaries.values.flatMap(measuresOfValue)];
}

function measuresOfValue({ name, members }: Summaries["values"][number]): Measure[] {
  const has = (member: string) => members.includes(member === "ohlc" ? "open" : member);
  return Object.entries(WORDS)
    .filter(([member]) => has(member))
    .map(([member, words]) => ({ id: `${member}:${name}`, words: words(plain(name)), member, property: name }));
}

/** How items without a value of the group are called. */
const NONE = "none";

interface Source {
  definition: Definition;
  /** As the service answers them: those of one span follow each other. */
  points: SummaryPoint[];
  measure: Measure;
  group: string | undefined;
  length: string;
  zone: string;
  /** `undefined` if no address has its items alone. */
  addressOfPoint: (point: SummaryPoint) => string | undefined;
}

/** A series for each value of the group. `madeOf` says which of them are left out. */
export function summaryChart({ definition, points, measure, group, length, zone, addressOfPoint }: Source): Drawing {
  // Items without a value are not those whose value is a word for that.
  const groups = Map.groupBy(points, (point) => (group === undefined ? measure.words : point.group?.[group]));
  const sizeOf = (name: string | undefined) => groups.get(name)!.reduce((sum, point) => sum + point.count, 0);
  const names = [...groups.keys()].map((name) => [name, sizeOf(name)] as const).sort(([, one], [, other]) => other - one);
  const shown = names.slice(0, MOST_SERIES).map(([name]) => name);
  const left =
    names.length > shown.length ? `; the ${shown.length} most frequent of ${number(names.length)} values of ${plain(group!)}` : "";
  const indexes = new Map([...new Set(points.map(({ start }) => start))].map((start, index) => [start, index]));
  const rows = shown.map((name) => {
    const row = new Array<SummaryPoint | undefined>(indexes.size).fill(undefined);
    for (const point of groups.get(name)!) row[indexes.get(point.start)!] = point;
    return row;
  });
  const series = shown.map((name, index) => seriesOf(plain(name ?? NONE), rows[index]!, measure));
  const adds = ["count", "sum"].includes(measure.member);
  // What is negative cannot stand on something.
  const stands = adds && (series.length === 1 || series.every(({ values }) => values.every((value) => (value ?? 0) >= 0)));
  const each = group === undefined ? "" : ` by ${plain(group)}`;
  return {
    input: {
      kind: measure.member === "ohlc" ? "candles" : stands ? "bars" : "lines",
      label: `${measure.member === "count" ? definition.title : measure.words} per ${LENGTHS[length] ?? length}${each}, ${zone}`,
      madeOf: left,
      x: [...indexes.keys()].map((start) => Date.parse(start) / 1000),
      zone,
      series,
    },
    pointOf: (of, index) => {
      const point = rows[of]![index]!;
      const name = group === undefined ? "" : `${shown[of] ?? NONE}, `;
      const value = valueWords(point, measure);
      const words = `${spanWords(point.start, length, zone)}: ${name}${value}${count(point.count, definition.items)}`;
      return { words: plain(words), address: addressOfPoint(point) };
    },
  };
}

function seriesOf(name: string, row: (SummaryPoint | undefined)[], { member, property }: Measure): Series {
  const of = (member: string) => row.map((point) => (member === "count" ? (point?.count ?? null) : valueOf(point, property!, member)));
  if (member !== "ohlc") return { name, values: of(member) };
  return { name, values: of("close"), candles: { open: of("open"), high: of("high"), low: of("low") } };
}

/** A number for the eye. The words of a point have all digits. */
function valueOf(point: SummaryPoint | undefined, property: string, member: string): number | null {
  const value = Number(measured(point, property)[member] ?? NaN);
  return Number.isFinite(value) ? value : null;
}

function measured(point: SummaryPoint | undefined, property: string): Record<string, string | number | undefined> {
  return { ...point?.values[property] };
}

function valueWords(point: SummaryPoint, { member, property, words }: Measure): string {
  if (property === undefined) return "";
  const values = measured(point, property);
  const members = member === "ohlc" ? ["open", "high", "low", "close"] : [member];
  const said = members.map((one) => `${member === "ohlc" ? one : words} ${values[one] ?? "unknown"}`);
  return `${said.join(", ")}; `;
}

/** The beginning of a span, as its zone writes it. */
function spanWords(start: string, length: string, zone: string): string {
  const local = moment(start, zone);
  if (length === "1M") return local.slice(0, -12);
  if (length === "1w") return `week of ${local.slice(0, -9)}`;
  return length === "1d" ? local.slice(0, -9) : local.slice(0, -3);
}
