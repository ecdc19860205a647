import type { History, Service } from "./history.js";
import { send } from "./send.js";
import type {
  Links,
  ListParameters,
  Listing,
  Page,
  PageParameters,
  Stored,
  Summary,
  SummaryOfAll,
  SummaryOfAllParameters,
  SummaryParameters,
  WindowParameters,
} from "./types.js";

export interface ReadOptions {
  signal?: AbortSignal | undefined;
}

/** One page, window or span of time, or items with given values: by its parameters, or by a link of another listing. */
export function list<Item extends Stored, NewItem, Owner, Filter extends string>(
  history: History<Item, NewItem, Owner, Filter>,
  which: ListParameters<Item, Filter> | string = {},
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

/** The newest items, newest first. `links.next` leads to older ones. */
export function newest<Item extends Stored, NewItem, Owner>(
  history: History<Item, NewItem, Owner>,
  limit = 10,
  options?: ReadOptions,
): Promise<Listing<Item, Owner>> {
  return list(history, { order: "desc", limit }, options);
}

/** Page after page: from the first, with `order: "desc"` from the last, which may be short, or from `page`. */
export function pages<Item extends Stored, NewItem, Owner>(
  history: History<Item, NewItem, Owner>,
  parameters: PageParameters = {},
  options?: ReadOptions,
): AsyncGenerator<Listing<Item, Owner>, void> {
  return walk(history, parameters, options);
}

/** Window after window, of 100 items unless `limit` is given, in the direction of `order`. */
export function windows<Item extends Stored, NewItem, Owner, Filter extends string>(
  history: History<Item, NewItem, Owner, Filter>,
  parameters: WindowParameters<Item, Filter> = {},
  options?: ReadOptions,
): AsyncGenerator<Listing<Item, Owner>, void> {
  // With a limit the service shows a window, never a page.
  return walk(history, { limit: 100, ...parameters }, options);
}

/** What the items add up to by spans of time: by its parameters, or by the link `next` of another answer. */
export function summary<Item extends Stored, NewItem, Owner, Filter extends string>(
  history: History<Item, NewItem, Owner, Filter>,
  which: SummaryParameters<Item, Filter> | string,
  options?: ReadOptions,
): Promise<Summary<Owner>> {
  return get(history, typeof which === "string" ? which : `${history.path}/summary${query(which)}`, options);
}

/** What the items of all owners add up to, of a history with a time series: by its parameters, or by the link `next` of another answer. */
export function summaryOfAll(
  service: Service,
  items: string,
  which: SummaryOfAllParameters | string,
  options?: ReadOptions,
): Promise<SummaryOfAll> {
  return get({ service }, typeof which === "string" ? which : `/v1/${encodeURIComponent(items)}/summary${query(which)}`, options);
}

async function* walk<Item extends Stored, NewItem, Owner, Filter extends string>(
  history: History<Item, NewItem, Owner, Filter>,
  first: ListParameters<Item, Filter>,
  options?: ReadOptions,
): AsyncGenerator<Listing<Item, Owner>, void> {
  for (let next: ListParameters<Item, Filter> | string | undefined = first; next; ) {
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
