// What a view of items derives from its address, from the answers of the service and from what is appended meanwhile: which numbers
// it shows, where its steps lead, and what has come. These are functions of their arguments: `test/view-state.test.ts` needs no browser.

export type Order = "asc" | "desc";

/** Where a window begins: its items are after a number, or before one. Without a number it begins at the end that its order shows first. */
export interface Cursor {
  after?: number;
  before?: number;
}

export interface Links {
  first?: string;
  prev?: string;
  next?: string;
  last?: string;
}

/** Where the four steps lead, in the order of reading. A step that leads nowhere is not offered. */
export interface Steps<To> {
  first?: To | undefined;
  previous?: To | undefined;
  next?: To | undefined;
  last?: To | undefined;
}

type Ends<To> = Record<"oldest" | "older" | "newer" | "newest", To | undefined>;

/** Steps go down the list: to older items where the newest stand first. */
export function stepsOf<To>(order: Order, { oldest, older, newer, newest }: Ends<To>): Steps<To> {
  return order === "asc"
    ? { first: oldest, previous: older, next: newer, last: newest }
    : { first: newest, previous: newer, next: older, last: oldest };
}

/** What the steps are called. */
export function stepWords(order: Order): Record<keyof Steps<string>, string> {
  return stepsOf(order, { oldest: "oldest", older: "older", newer: "newer", newest: "newest" }) as Record<keyof Steps<string>, string>;
}

/** The steps from one item to its neighbours. What is not known yet leads nowhere. */
export function itemSteps(order: Order, seq: number, firstSeq: number | undefined, total: number | undefined): Steps<number> {
  return stepsOf(order, {
    oldest: firstSeq !== undefined && seq > firstSeq ? firstSeq : undefined,
    older: firstSeq !== undefined && seq > firstSeq ? seq - 1 : undefined,
    newer: total !== undefined && seq < total ? seq + 1 : undefined,
    newest: total !== undefined && seq < total ? total : undefined,
  });
}

// Pages

/** What a view of pages shows: a page, the newest items, or the items before or after a number. */
export interface PageView {
  /** Shows the items after this number, up to `end`, which is `Infinity` for the newest. */
  after: number;
  end: number;
  /** The number of the page. Newest items and those at a cursor may belong to several: it is that of the last of them. */
  page: number;
  /** The first and the last page that there are. */
  first: number;
  last: number;
  steps: Steps<PagePlace>;
  /** What the service is asked for. Nothing, where there can be no items. */
  asked: Asked | undefined;
  /** The number of the last item that is there, known before the items are. */
  lastSeq: number | undefined;
}

/** A page as it is stored, or a window. A window of what was there at some moment never changes: the browser keeps it. */
export type Asked = { page: number } | { after: number; limit: number; asOf?: number };

/** The service answers at most so many items that are not a page. */
export const MOST_IN_WINDOW = 100;

/** Where a step leads: to a page, to the items that go on exactly where others end, or to the newest. */
export type PagePlace = number | "newest" | Cursor;

interface PageChoice {
  /** The number of the page. Without it and without a cursor, the newest items: as many as a page has. */
  wanted: number | undefined;
  /** Shows the items before a number, or after it. */
  cursor?: Cursor;
  order: Order;
  /** Items in a view, and on a page of the history. */
  rows: number;
  pageSize: number;
  /** The last number of the history by now, and when the newest items were chosen. */
  total: number;
  newestAt: number;
  /** The first number that is not deleted. */
  firstSeq: number;
}

export function pageView({ wanted, cursor = {}, order, rows: chosen, pageSize, total, newestAt, firstSeq }: PageChoice): PageView {
  const rows = wanted === undefined ? Math.min(chosen, MOST_IN_WINDOW) : chosen;
  const pageOf = (seq: number) => Math.max(Math.ceil(seq / rows), 1);
  const last = pageOf(total);
  const first = Math.min(pageOf(firstSeq), last);
  if (wanted !== undefined) {
    const steps = stepsOf<PagePlace>(order, {
      oldest: wanted > first ? first : undefined,
      older: wanted > first ? Math.min(wanted - 1, last) : undefined,
      newer: wanted < last ? wanted + 1 : undefined,
      newest: "newest",
    });
    const [after, end] = [(wanted - 1) * rows, wanted * rows];
    const asked = rows === pageSize ? { page: wanted } : windowOf(after, rows, end <= total ? end : undefined);
    return { after, end, page: wanted, first, last, steps, asked, lastSeq: wanted > last ? undefined : Math.min(end, total) };
  }
  const begin = Math.max(firstSeq - 1, 0);
  const isNewest = cursor.after === undefined && cursor.before === undefined;
  const end = isNewest ? Infinity : cursor.after === undefined ? cursor.before! - 1 : Math.max(cursor.after, begin) + rows;
  const after = Math.max(isNewest ? newestAt - rows : end - rows, begin);
  const hasOlder = after > begin;
  const hasNewer = end < total;
  const steps = stepsOf<PagePlace>(order, {
    oldest: hasOlder ? { after: begin } : undefined,
    older: hasOlder ? { before: after + 1 } : undefined,
    // The newest items begin where these end only by chance.
    newer: !hasNewer ? undefined : end === total - rows ? "newest" : { after: end },
    newest: isNewest ? undefined : "newest",
  });
  const lastSeq = isNewest ? newestAt : Math.min(end, total);
  const isEmpty = isNewest ? total === 0 : end <= after;
  const asked = isEmpty ? undefined : windowOf(after, Math.min(rows, end - after), isNewest ? newestAt : end <= total ? end : undefined);
  return { after, end, page: pageOf(Math.min(end, total)), first, last, steps, asked, lastSeq: lastSeq > after ? lastSeq : undefined };
}

function windowOf(after: number, rows: number, asOf: number | undefined): Asked {
  return { after, limit: Math.min(rows, MOST_IN_WINDOW), ...(asOf === undefined ? {} : { asOf }) };
}

/** How far the page of the last item is filled. */
export function fillOf(lastSeq: number, rows: number): { page: number; held: number } {
  return { page: Math.ceil(lastSeq / rows), held: ((lastSeq - 1) % rows) + 1 };
}

/** Which items these are, in words. */
export function numbersOf(items: readonly { seq: number }[]): string {
  const number = new Intl.NumberFormat("en").format;
  const seqs = items.map(({ seq }) => seq);
  return `numbers ${number(Math.min(...seqs))} to ${number(Math.max(...seqs))}`;
}

/** What has come that belongs to a page, of which the items up to `until` are shown as they were stored. */
export function arrivedOnPage<Item extends { seq: number }>(arrived: Item[], until: number, end: number) {
  return {
    arrived: arrived.filter(({ seq }) => seq > until && seq <= end),
    /** Whether others have come before those that are known. */
    missed: (arrived[0]?.seq ?? 0) > until + 1,
  };
}

// Selections: windows of items of a span of time, or with given values

/** The cursor of a link of the service. `after=0` is one: the beginning. */
export function cursorOf(link: string): Cursor {
  const query = new URL(link, "http://service").searchParams;
  const whole = (name: keyof Cursor) => (query.has(name) ? { [name]: Number(query.get(name)) } : {});
  return { ...whole("after"), ...whole("before") };
}

/** Where a search began. */
export interface Begin extends Cursor {
  order: Order;
}

/** What a search has found so far. */
export interface Search<Item> {
  /** In the order of the search's view. */
  items: Item[];
  /** Where it goes on. Without it, everything in its direction is examined. */
  ahead?: Cursor | undefined;
  /** Where another search looks in the other direction. */
  back?: Cursor | undefined;
  /** The cursor of the end of its order. */
  last?: Cursor | undefined;
}

/** Whether a search goes towards newer items: from `after` on, towards older ones from `before` on. */
export function goesToNewer({ order, after, before }: Begin): boolean {
  return after !== undefined || (before === undefined && order === "asc");
}

/** A search with one more window. */
export function withWindow<Item extends { seq: number }>(
  begin: Begin,
  search: Search<Item> | undefined,
  { items, links }: { items: Item[]; links: Links },
): Search<Item> {
  const isForwards = goesToNewer(begin) === (begin.order === "asc");
  const [ahead, back] = isForwards ? [links.next, links.prev] : [links.prev, links.next];
  const cursor = (link: string | undefined) => (link === undefined ? undefined : cursorOf(link));
  const before = search?.items ?? [];
  return {
    items: isForwards ? [...before, ...items] : [...items, ...before],
    ahead: cursor(ahead),
    back: search ? search.back : cursor(back),
    last: cursor(links.last),
  };
}

export function searchSteps(begin: Begin, search: Search<unknown> | undefined): Steps<Cursor> {
  const isForwards = goesToNewer(begin) === (begin.order === "asc");
  const [next, previous] = isForwards ? [search?.ahead, search?.back] : [search?.back, search?.ahead];
  const isFirst = begin.before === undefined && (begin.order === "asc" ? !begin.after : begin.after === undefined);
  return {
    first: isFirst ? undefined : {},
    previous: isFirst ? undefined : previous,
    next,
    last: next && search?.last,
  };
}

/** Whether a search shows the newest end of the history, where what is appended belongs. */
export function isAtNewest(begin: Begin, search: Search<unknown> | undefined): boolean {
  return search !== undefined && (goesToNewer(begin) ? search.ahead : search.back) === undefined;
}

/** How far a search is, in words. */
export function progressWords(begin: Begin, search: Search<unknown> | undefined, total: number): string {
  const number = new Intl.NumberFormat("en").format;
  if (search === undefined) return "";
  const isWhole = begin.before === undefined && !begin.after;
  if (search.ahead === undefined) return isWhole ? "everything is examined" : "everything in this direction is examined";
  const { after, before = 1 } = search.ahead;
  if (after !== undefined) return `examined to number ${number(after)} of ${number(total)}`;
  return `examined from number ${number(begin.before === undefined ? total : begin.before - 1)} down to ${number(before)}`;
}

/** How much of what a search may examine is examined: from 0 to 1. */
export function progressOf(begin: Begin, search: Search<unknown> | undefined, total: number): number {
  if (search === undefined) return 0;
  const { ahead } = search;
  if (ahead === undefined) return 1;
  const start = goesToNewer(begin) ? (begin.after ?? 0) : (begin.before ?? total + 1);
  const way = goesToNewer(begin) ? total - start : start - 1;
  return way <= 0 ? 0 : Math.min(Math.abs((ahead.after ?? ahead.before ?? start) - start) / way, 1);
}

/** What has come that belongs to a selection, which was first asked for when the history had `begun` items. */
export function arrivedInSearch<Item extends { seq: number }>(
  arrived: Item[],
  found: Item[],
  begun: number,
  isSelected: (item: Item) => boolean,
) {
  const known = new Set(found.map(({ seq }) => seq));
  return {
    // Earlier ones are of this window or of others.
    arrived: arrived.filter((item) => item.seq > begun && !known.has(item.seq) && isSelected(item)),
    missed: (arrived[0]?.seq ?? 0) > begun + 1,
  };
}

/** Whether a text is in one of the values of an item, whatever the case of its letters. */
export function hasText(value: unknown, text: string): boolean {
  if (typeof value === "object" && value !== null) return Object.values(value).some((one) => hasText(one, text));
  return value !== undefined && String(value).toLowerCase().includes(text.toLowerCase());
}
