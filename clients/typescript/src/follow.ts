// What is appended, in the cache of TanStack Query, version 5. Nothing of it is imported.

import type { History } from "./history.js";
import { liveBatches, type LiveOptions } from "./live.js";
import type { Listing, Stored } from "./types.js";

/** What is used of a `QueryClient`. */
interface Cache {
  ensureQueryData(query: any): Promise<unknown>;
  ensureInfiniteQueryData(query: any): Promise<unknown>;
  setQueryData(key: readonly unknown[], update: (cached: any) => any): unknown;
  cancelQueries(which: { queryKey: readonly unknown[] }): Promise<void>;
  invalidateQueries(which: { queryKey: readonly unknown[] }): Promise<void>;
}

/**
 * Keeps a `listQuery` or `infiniteQuery` of the history live in the cache, until the signal aborts: reads it if it is not there, and adds
 * each item that is appended to a window that shows the end of the history. Any other listing, such as a page, is asked for again instead.
 * Ends as `live` does.
 */
export async function followQuery<Item extends Stored, NewItem, Owner>(
  history: History<Item, NewItem, Owner>,
  client: Cache,
  query: { queryKey: readonly unknown[]; queryFn: unknown; initialPageParam?: string },
  options?: LiveOptions,
): Promise<void> {
  type Shown = Listing<Item>;
  const infinite = query.initialPageParam !== undefined;
  const { queryKey } = query;
  const data = await (infinite ? client.ensureInfiniteQueryData(query) : client.ensureQueryData(query));
  const listings = infinite ? (data as { pages: Shown[] }).pages : [data as Shown];
  // What was appended since the first of them was read may be missing in another.
  const totals = listings.flatMap(({ totalItems }) => totalItems ?? []);
  for await (const { items } of liveBatches(history, { after: totals.length ? Math.min(...totals) : undefined }, options)) {
    // An answer that is under way may be older than these items.
    await client.cancelQueries({ queryKey });
    let whole: unknown;
    client.setQueryData(queryKey, (cached) => (whole = cached && (infinite ? grownPages(cached, items) : grown(cached, items))) ?? cached);
    if (!whole) await client.invalidateQueries({ queryKey });
  }
}

/** The pages of an infinite query with these items: the first or the last of them shows the end of the history. */
function grownPages<Item extends Stored, Data extends { pages: Listing<Item>[] }>(data: Data, items: Item[]): Data | undefined {
  const { pages } = data;
  const end = pages[0]?.order === "desc" ? 0 : pages.length - 1;
  const page = pages[end] && grown(pages[end], items);
  return page && { ...data, pages: pages.map((each, index) => (index === end ? page : each)) };
}

/** The listing with these items; `undefined` if it does not show the end of the history, or lacks items before them. */
function grown<Item extends Stored>(listing: Listing<Item>, items: Item[]): Listing<Item> | undefined {
  const { order, totalItems, totalPages: _, links, items: shown, ...rest } = listing;
  const descending = order === "desc";
  const last = (descending ? shown[0] : shown.at(-1))?.seq ?? totalItems;
  if (totalItems === undefined || last !== totalItems || !links.newer) return undefined;
  const added = items.filter(({ seq }) => seq > last);
  const end = added.at(-1)?.seq;
  if (!end) return listing;
  if (added[0]!.seq !== last + 1) return undefined;
  const all = descending ? [...added.reverse(), ...shown] : [...shown, ...added];
  return { ...rest, order, totalItems: end, items: all, links: { ...links, newer: links.newer.replace(/after=\d+/, `after=${end}`) } } as Listing<Item>;
}
