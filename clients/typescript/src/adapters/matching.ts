// Rows with given values, by offset. The service finds them only along cursor windows, and does not count them: how many there are
// is known when the last of them is found.

import type { History } from "../history.js";
import { list, type ReadOptions } from "../read.js";
import type { ListParameters, Stored } from "../types.js";
import type { Range } from "./snapshot.js";

/** The most items of a window. */
const LONGEST = 100;

/** Some rows, whether there are more after them, and how many there are at all, once that is known. */
export interface MatchingRows<Item> {
  rows: Item[];
  more: boolean;
  total: number | undefined;
}

/** A walk through the items with given values, which keeps what it has seen: a row does not move while others append. */
export interface Walk<Item> {
  read(range: Range, options?: ReadOptions): Promise<MatchingRows<Item>>;
  /** The next read begins a new walk. */
  refresh(): void;
}

/** `values` are parameters of the service: filters, or `from` and `to`. It refuses any other. */
export function matching<Item extends Stored, NewItem, Owner>(history: History<Item, NewItem, Owner>, values: object): Walk<Item> {
  interface Seen {
    items: Item[];
    /** What shows the next window: at first nothing, then a link. `null`: there is none. */
    next?: string | null;
    /** Reads at the same time take the walk's steps one after the other. */
    turn: Promise<unknown>;
  }
  const none = (): Seen => ({ items: [], turn: Promise.resolve() });
  let seen = none();

  async function walk(seen: Seen, { offset, limit, order }: Range, options?: ReadOptions): Promise<MatchingRows<Item>> {
    const end = offset + limit;
    // One row more tells whether there are more. A window may be short, or empty, and have a next one.
    while (seen.items.length <= end && seen.next !== null) {
      const first = { ...values, order, limit: Math.min(limit + 1, LONGEST) } as ListParameters<Item>;
      const { items, links } = await list(history, seen.next ?? first, options);
      seen.items.push(...items);
      seen.next = links.next ?? null;
    }
    const { length } = seen.items;
    return { rows: seen.items.slice(offset, end), more: length > end, total: seen.next === null ? length : undefined };
  }

  return {
    read(range, options) {
      const own = seen;
      const rows = own.turn.then(() => walk(own, range, options));
      own.turn = rows.catch(() => {});
      return rows;
    },
    refresh() {
      seen = none();
    },
  };
}
