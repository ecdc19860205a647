import type { History, Service } from "./history.js";
import { send } from "./send.js";
import type { Links, ListParameters, Listing, Page, PageParameters, Stored, WindowParameters } from "./types.js";

export interface ReadOptions {
  signal?: AbortSignal | undefined;
}

/** One page, window or span of time, or items with given values: by its parameters, or by a link of another listing. */
export function list<Item extends Stored, NewItem, Owner>(
  history: History<Item, NewItem, Owner>,
  which: ListParameters<Item> | string = {},
  options?: ReadOptions,
): Promise<Listing<Item, Owner>> {
  return get(history, typeof which === "string" ? which : history.path + query(which), options);
}

/** A page as it is stored. If it is `full`, the browser keeps it. */
export function page<Item extends Stored, NewItem, Owner>(
  history: History<Item, NewItem, Owner>,
  number: number,
  options?: ReadOptions,
): Promise<Page<Item, Owner>> {
  return get(history, `${history.path}/pages/${number}`, options);
}

/** One item, and the number of its page. */
export function item<Item extends Stored, NewItem, Owner>(
  history: History<Item, NewItem, Owner>,
  seq: number,
  options?: ReadOptions,
): Promise<Item & { page: number }> {
  return get(history, `${history.path}/${seq}`, options);
}

/** Page after page: from the first, with `order: "desc"` from the last, or from `page`. */
export function pages<Item extends Stored, NewItem, Owner>(
  history: History<Item, NewItem, Owner>,
  parameters: PageParameters = {},
  options?: ReadOptions,
): AsyncGenerator<Listing<Item, Owner>, void> {
  return walk(history, parameters, options);
}

/** Window after window, of 100 items unless `limit` is given, in the direction of `order`. */
export function windows<Item extends Stored, NewItem, Owner>(
  history: History<Item, NewItem, Owner>,
  parameters: WindowParameters<Item> = {},
  options?: ReadOptions,
): AsyncGenerator<Listing<Item, Owner>, void> {
  // With a limit the service shows a window, never a page.
  return walk(history, { limit: 100, ...parameters }, options);
}

async function* walk<Item extends Stored, NewItem, Owner>(
  history: History<Item, NewItem, Owner>,
  first: ListParameters<Item>,
  options?: ReadOptions,
): AsyncGenerator<Listing<Item, Owner>, void> {
  for (let next: ListParameters<Item> | string | undefined = first; next; ) {
    const listing: { links: Links } & Listing<Item, Owner> = await list(history, next, options);
    yield listing;
    next = listing.links.next;
  }
}

async function get<T>({ service }: { service: Service }, path: string, { signal }: ReadOptions = {}): Promise<T> {
  return (await send(service, path, { signal: signal ?? null })).json();
}

/** Parameters as a query, without those that are undefined. One with several values is repeated. */
export function query(parameters: object): string {
  const pairs = Object.entries(parameters).flatMap(([name, value]) => [value].flat().map((one) => [name, one]));
  const given = pairs.filter(([, value]) => value !== undefined);
  return given.length ? "?" + new URLSearchParams(given) : "";
}
