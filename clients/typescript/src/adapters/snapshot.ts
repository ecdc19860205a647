// What the adapters share: rows by offset that do not move while others append, and the refusal of what they cannot do.

import { append, type AppendOptions } from "../append.js";
import type { History } from "../history.js";
import { list, type ReadOptions } from "../read.js";
import type { Appended, Stored } from "../types.js";

/** Which rows. */
export interface Range {
  offset: number;
  limit: number;
  order: "asc" | "desc";
}

/** Some rows, and how many there are at all. */
export interface Rows<Item> {
  rows: Item[];
  total: number;
}

/** Reads that all show the history as it was at the first of them, until `refresh`. Later appends move no row. */
export interface Snapshot<Item, NewItem, Owner> {
  read(range: Range, options?: ReadOptions): Promise<Rows<Item>>;
  /** The next read shows the newest items. */
  refresh(): void;
  /** Appends one item, or an array of 1 to 1,000. The next read shows them. */
  create(items: NewItem | readonly NewItem[], options?: AppendOptions): Promise<Appended<Owner>>;
}

export function snapshot<Item extends Stored, NewItem, Owner>(
  history: History<Item, NewItem, Owner>,
): Snapshot<Item, NewItem, Owner> {
  /** The total of the first read, and so the `asOf` of all others. 0: the read failed, or the history was empty. */
  let moment: Promise<number> | undefined;

  async function window(parameters: Range & { asOf?: number }, options?: ReadOptions): Promise<Rows<Item>> {
    const { items, totalItems } = await list(history, parameters, options);
    return { rows: items, total: totalItems! }; // only spans of time have no totals
  }

  return {
    async read(range, options) {
      // Reads that begin together wait for the first. If that has no moment, one of them becomes the first.
      for (let known; (known = moment); ) {
        const asOf = await known;
        if (asOf) return window({ ...range, asOf }, options);
        if (moment === known) moment = undefined;
      }
      const first = window(range, options);
      moment = first.then(({ total }) => total, () => 0);
      return first;
    },
    refresh() {
      moment = undefined;
    },
    async create(items, options) {
      const appended = await append(history, items, options);
      moment = undefined;
      return appended;
    },
  };
}

/** The order that a framework asks for by fields and their directions. Without any, the oldest rows come first. */
export function orderOf(sorting: readonly (readonly [field: string, direction: unknown])[]): Range["order"] {
  refuse("sorting by anything but seq", sorting.map(([field]) => field).filter((field) => field !== "seq"));
  const direction = sorting[0]?.[1] ?? "asc";
  return String(direction).toLowerCase() as Range["order"]; // the service refuses any other
}

/** Throws if a framework asks for what the service does not do by offset. */
export function refuse(what: string, fields: readonly string[]): void {
  if (fields.length) throw new RangeError(`rows by offset have no ${what}: ${fields.join(", ")}`);
}

/** What changes and deletions end with. */
export async function appendOnly(): Promise<never> {
  throw new Error("a history is append-only: its items are never changed or deleted");
}
