// Charts of items: how many there are in each span of time, or a number of them over time.

import type { Definition } from "../api/catalog";
import type { Item } from "../api/read";
import { count, dayFrom, instantOf, moment, number } from "../format";
import { plain } from "../parts/text";
import type { Drawing } from "./input";

export const UNITS = ["hour", "day", "month"] as const;
export type Unit = (typeof UNITS)[number];

/** More are not told apart by their colour. */
export const MOST_SERIES = 8;

interface Source {
  definition: Definition;
  /** In any order. */
  items: Item[];
  /** The zone whose days and months are drawn: that of the browser, or UTC. */
  zone: string;
  addressOfItem: (seq: number) => string;
  addressOfSpan: (from: string, to: string) => string;
}

/** The unit that makes a readable number of bars. */
export function unitFor(items: Item[], date: string): Unit {
  const at = items.map((item) => Date.parse(String(item[date])));
  const hours = (max(at) - min(at)) / 3_600_000;
  return hours < 96 ? "hour" : hours < 24 * 120 ? "day" : "month";
}

/** The caller says in `madeOf` what the items are. */
export function countsOf(source: Source, unit: Unit): Drawing {
  const { definition, items, zone, addressOfSpan } = source;
  const counts = new Map<number, number>();
  for (const item of items) {
    const begin = beginOf(String(item[definition.date]), unit, zone);
    counts.set(begin, (counts.get(begin) ?? 0) + 1);
  }
  const x = [...counts.keys()].sort((one, other) => one - other);
  const values = x.map((begin) => counts.get(begin)!);
  const label = `${definition.title} per ${unit}`;
  return {
    input: { kind: "bars", label, madeOf: "", x: x.map((at) => at / 1000), zone, series: [{ name: label, values }] },
    pointOf: (_, index) => {
      const [from, to] = [x[index]!, endOf(x[index]!, unit, zone)].map((at) => new Date(at).toISOString());
      return { words: `${spanWords(from!, unit, zone)}: ${count(values[index]!, definition.items)}`, address: addressOfSpan(from!, to!) };
    },
  };
}

/** A number of the items over time, a line for each value of a filter. `madeOf` says which of the values are left out. */
export function valuesOf(source: Source, measure: string, split: string | undefined): Drawing {
  const { definition, zone, addressOfItem } = source;
  const at = (item: Item) => Date.parse(String(item[definition.date]));
  const items = source.items.filter((item) => item[measure] != null).sort((one, other) => at(one) - at(other) || one.seq - other.seq);
  const groups = Map.groupBy(items, (item) => (split === undefined ? measure : String(item[split] ?? "none")));
  const names = [...groups.keys()].sort((one, other) => groups.get(other)!.length - groups.get(one)!.length);
  const shown = names.slice(0, MOST_SERIES);
  const left =
    names.length > shown.length ? `; the ${shown.length} most frequent of ${number(names.length)} values of ${plain(split!)}` : "";
  const kept = split === undefined ? items : items.filter((item) => shown.includes(String(item[split] ?? "none")));
  const series = shown.map((name) => ({
    name: plain(name),
    values: kept.map((item) => (split === undefined || String(item[split] ?? "none") === name ? Number(item[measure]) : null)),
  }));
  const label = `${plain(measure)}${split === undefined ? "" : ` by ${plain(split)}`}`;
  return {
    input: { kind: "lines", label, madeOf: left, x: kept.map((item) => at(item) / 1000), zone, series },
    pointOf: (of, index) => {
      const item = kept[index]!;
      const name = split === undefined ? "" : `${shown[of]}, `;
      return {
        words: plain(`${name}${measure} ${item[measure]}, number ${number(item.seq)}, ${moment(String(item[definition.date]), zone)}`),
        address: addressOfItem(item.seq),
      };
    },
  };
}

function beginOf(at: string, unit: Unit, zone: string): number {
  if (unit === "hour") return Math.floor(Date.parse(at) / HOUR) * HOUR;
  const day = moment(at, zone).slice(0, 10);
  return midnight(unit === "day" ? day : `${day.slice(0, 7)}-01`, zone);
}

function endOf(begin: number, unit: Unit, zone: string): number {
  if (unit === "hour") return begin + HOUR;
  const day = moment(new Date(begin).toISOString(), zone).slice(0, 10);
  // 31 days after the first of a month is a day of the next one.
  return midnight(unit === "day" ? dayFrom(day, 1) : `${dayFrom(day, 31).slice(0, 7)}-01`, zone);
}

const HOUR = 3_600_000;

function midnight(day: string, zone: string): number {
  return Date.parse(instantOf(day, "00:00:00", zone));
}

function spanWords(from: string, unit: Unit, zone: string): string {
  return moment(from, zone).slice(0, { hour: 16, day: 10, month: 7 }[unit]);
}

// Of more items than a call has arguments.
function min(values: number[]): number {
  return values.reduce((one, other) => Math.min(one, other), Infinity);
}

function max(values: number[]): number {
  return values.reduce((one, other) => Math.max(one, other), -Infinity);
}
