// What a view of a history shows, as its address says it. Parameters of the API have their names; those of the explorer begin
// with `_`, which no filter does.

import { addressOf, type Parameter } from "../address";
import type { Definition } from "../api/catalog";
import { fromInstant, toInstant } from "../format";

export type Tab = "items" | "chart" | "append";

export interface Parameters {
  tab: Tab;
  order: "asc" | "desc";
  /** A page by its number. Without it the newest page, and what is appended to it. */
  page?: number;
  /** A span of time: days or instants. */
  from?: string;
  to?: string;
  /** Values by the name of their filter. */
  filters: Record<string, string[]>;
  /** Where a window begins: of a span, of filters, or of items that go on where others ended. */
  after?: number;
  before?: number;
  /** Items in a view. Without it, as many as a page has. */
  rows?: number;
  /** The number of an item that is marked. */
  mark?: number;
  /** Whether items that are appended are shown as they come. */
  live: boolean;
  /** Of a chart of summaries: the length of its spans, their time zone, and what its items are grouped by. */
  length?: string;
  zone?: string;
  group?: string;
  /** Of any chart. */
  measure?: string;
  by?: string;
  split?: string;
  most?: number;
}

/** How many rows a view may have: the service answers at most 100 items that are not a page. */
export const ROWS = [10, 25, 50, 100];

export function readParameters(query: URLSearchParams, { filters, summaries }: Definition): Parameters {
  const tab = query.get("_tab");
  const whole = (name: string, as = name) => {
    const value = query.get(as) ?? "";
    return /^\d{1,16}$/.test(value) ? { [name]: Number(value) } : {};
  };
  const rows = Number(query.get("_rows"));
  const text = (name: string, as = name) => (query.get(as) ? { [name]: query.get(as)! } : {});
  const given = filters.map(({ name }) => [name, query.getAll(name)] as const).filter(([, values]) => values.length > 0);
  return {
    tab: tab === "chart" || tab === "append" ? tab : "items",
    order: query.get("order") === "asc" ? "asc" : "desc",
    filters: Object.fromEntries(given),
    live: query.get("_live") !== "off",
    ...whole("page"),
    ...whole("after"),
    ...whole("before"),
    ...whole("most", "_most"),
    ...whole("mark", "_mark"),
    ...(ROWS.includes(rows) ? { rows } : {}),
    ...text("from"),
    ...text("to"),
    // Elsewhere these may be filters.
    ...(summaries && { ...text("length", "by"), ...text("zone", "tz"), ...text("group") }),
    ...text("measure", "_measure"),
    ...text("by", "_by"),
    ...text("split", "_split"),
  };
}

/** Only items of a span of time, or with given values: a listing without totals. */
export function isSelection({ from, to, filters }: Parameters): boolean {
  return Boolean(from || to || Object.keys(filters).length);
}

/** Parameters of another view. Those that are left out, or undefined, are as without a word about them. */
export type Change = { [Name in keyof Parameters]?: Parameters[Name] | undefined };

export function addressOfHistory({ owners, items }: Definition, owner: string, parameters: Change): string {
  const { tab, order, page, from, to, filters = {}, after, before, live, measure, by, split, most, rows, mark } = parameters;
  const { length, zone, group } = parameters;
  const plain: Record<string, Parameter> = {
    page,
    order: order === "asc" ? "asc" : undefined,
    from,
    to,
    after,
    before,
    by: length,
    tz: zone,
    group,
    _tab: tab === "items" ? undefined : tab,
    _measure: measure,
    _by: by,
    _split: split,
    _most: most,
    _rows: rows,
    _mark: mark,
    _live: live === false ? "off" : undefined,
  };
  return addressOf([owners, owner, items], { ...plain, ...filters });
}

/** The query of the API for a selection, without a cursor. */
export function selectionQuery({ from, to, filters, order }: Parameters): Record<string, string | string[]> {
  return {
    ...(from ? { from: fromInstant(from) } : {}),
    ...(to ? { to: toInstant(to) } : {}),
    ...filters,
    ...(order === "desc" ? { order } : {}),
  };
}

/** The path of a request with this query. */
export function pathOf(path: string, query: Record<string, string | string[]>): string {
  const pairs = Object.entries(query).flatMap(([name, value]) => [value].flat().map((one): [string, string] => [name, one]));
  return `${path}?${new URLSearchParams(pairs)}`;
}

/** Whether an item belongs to a selection, as the service decides it. */
export function isSelected(item: Record<string, unknown>, { from, to, filters }: Parameters, { date }: Definition): boolean {
  const at = Date.parse(String(item[date]));
  if (from && at < Date.parse(fromInstant(from))) return false;
  if (to && at >= Date.parse(toInstant(to))) return false;
  return Object.entries(filters).every(([name, values]) => values.includes(String(item[name])));
}
