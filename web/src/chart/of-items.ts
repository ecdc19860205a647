// Charts of items: how many there are in each span of time, or a number of them over time.

import type { Definition } from "../api/catalog";
import type { Item } from "../api/read";
import { count, number } from "../format";
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
  const { definition, items, addressOfSpan } = source;
  const counts = new Map<number, number>();
  for (const item of items) {
    const begin = beginOf(new Date(String(item[definition.date])), unit);
    counts.set(begin, (counts.get(begin) ?? 0) + 1);
  }
  const x = [...counts.keys()].sort((one, other) => one - other);
  const values = x.map((begin) => counts.get(begin)!);
  const label = `${definition.title} per ${unit}`;
  return {
    input: { kind: "bars", label, madeOf: "", x: x.map((at) => at / 1000), series: [{ name: label, values }] },
    pointOf: (_, index) => {
      const [from, to] = [x[index]!, endOf(x[index]!, unit)].map((at) => new Date(at).toISOString());
      return { words: `${spanWords(from!, unit)}: ${count(values[index]!, definition.items)}`, address: addressOfSpan(from!, to!) };
    },
  };
}

/** A number of the items over time, a line for each value of a filter. `madeOf` says which of the values are left out. */
export function valuesOf(source: Source, measure: string, split: string | undefined): Drawing {
  const { definition, addressOfItem } = source;
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
    input: { kind: "lines", label, madeOf: left, x: kept.map((item) => at(item) / 1000), series },
    pointOf: (of, index) => {
      const item = kept[index]!;
      const name = split === undefined ? "" : `${shown[of]}, `;
      return {
        words: plain(`${name}${measure} ${item[measure]}, number ${number(item.seq)}, ${item[definition.date]}`),
        address: addressOfItem(item.seq),
      };
    },
  };
}

function beginOf(at: Date, unit: Unit): number {
  if (unit === "month") return Date.UTC(at.getUTCFullYear(), at.getUTCMonth());
  const length = unit === "hour" ? 3_600_000 : 86_400_000;
  return Math.floor(at.getTime() / length) * length;
}

function endOf(begin: number, unit: Unit): number {
  const at = new Date(begin);
  if (unit === "month") return Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + 1);
  return begin + (unit === "hour" ? 3_600_000 : 86_400_000);
}

function spanWords(from: string, unit: Unit): string {
  if (unit === "month") return from.slice(0, 7);
  return unit === "day" ? from.slice(0, 10) : `${from.slice(0, 10)} ${from.slice(11, 16)}`;
}

// Of more items than a call has arguments.
function min(values: number[]): number {
  return values.reduce((one, other) => Math.min(one, other), Infinity);
}

function max(values: number[]): number {
  return values.reduce((one, other) => Math.max(one, other), -Infinity);
}
