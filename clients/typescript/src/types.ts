// What the service says and takes. The types of any history come from those of trades, which are generated from the
// service's own document: when the document changes, these change with it.

import type { components, operations } from "./openapi.js";

type Schemas = components["schemas"];

export type Trade = Schemas["Trade"];
export type TradeInput = Schemas["TradeInput"];
export type Links = Schemas["Links"];
export type Problem = Schemas["Problem"];

/** What every stored item has, besides the properties of its definition. */
export type Stored = Pick<Trade, "seq">;

type OfAnyHistory<OfTrades, Item, Owner> = Omit<OfTrades, "customerId" | "items"> & { items: Item[] } & Owner;

/** A page of a history, or a window, with totals and links. */
export type Listing<Item, Owner = unknown> = OfAnyHistory<Schemas["TradeListing"], Item, Owner>;

/** A page as it is stored. If it is `full`, it never changes. */
export type Page<Item, Owner = unknown> = OfAnyHistory<Schemas["TradePage"], Item, Owner>;

/** Where the items of a request are stored. */
export type Appended<Owner = unknown> = Omit<Schemas["AppendedTrades"], "customerId"> & Owner;

/** An owner, and how much it has of one history. */
export type OwnerTotals<Owner = unknown> = { owner: Owner } & Schemas["HistoryTotals"];

type Query = NonNullable<operations["listTrades"]["parameters"]["query"]>;

/** The parameters of the listings of every history. All others of a listing are filters. */
type Standard = "page" | "after" | "before" | "offset" | "limit" | "from" | "to" | "asOf" | "order" | "wait";

/** These parameters, and no other. */
type Only<Optional extends Standard, Needed extends Standard = never> = Pick<Query, Optional> &
  Required<Pick<Query, Needed>> & { [Other in Exclude<Standard, Optional | Needed>]?: never };

/** `after` or `before`, with these. */
type AtCursor<Optional extends Standard> = Only<Optional | "after"> | Only<Optional | "before">;

/** The filters that a history is known to have. Of `History<Item, NewItem>` alone none is known. */
type Known<Filter extends string> = string extends Filter ? never : Filter;
/** Values that items must have, one or one of several. */
type Values<Item, Filter extends string> = {
  [Name in Known<Filter>]?: Name extends keyof Item ? NonNullable<Item[Name]> | readonly NonNullable<Item[Name]>[] : never;
};
type Unfiltered<Filter extends string> = { [Name in Known<Filter>]?: never };

/** A page: the first, with `order: "desc"` the last, or `page`. */
export type PageParameters = Only<"page" | "order">;

type WindowOfMoment = Only<"limit" | "order", "asOf" | "after"> | Only<"limit" | "order", "asOf" | "before">;
/** The answer comes when the window has an item, or after `wait` seconds. */
type LongPoll = Only<"limit" | "order", "after" | "wait">;
type WindowAtOffset = Only<"limit" | "order" | "asOf", "offset">;
type SpanOfTime = AtCursor<"limit" | "order" | "from" | "to">;

/** A window, a span of time, or items with given values. */
export type WindowParameters<Item = unknown, Filter extends string = never> =
  | ((WindowOfMoment | WindowAtOffset | LongPoll) & Unfiltered<Filter>)
  | (SpanOfTime & Values<Item, Filter>);

/** What a listing shows: a page, a window, a span of time, or items with given values. What the service refuses together does not compile. */
export type ListParameters<Item = unknown, Filter extends string = never> =
  | (PageParameters & Unfiltered<Filter>)
  | WindowParameters<Item, Filter>;

/** The properties by which trades can be filtered. */
export type TradeFilter = Exclude<keyof Query, Standard>;

/** What the numbers of one property add up to. Sums, averages and decimals are strings. */
export interface Measures {
  sum?: string;
  vwap?: string;
  min?: number | string;
  max?: number | string;
  open?: number | string;
  high?: number | string;
  low?: number | string;
  close?: number | string;
}

/** A span of time, or a group of its items, and what they add up to. */
export type SummaryPoint = Omit<Schemas["TradeSeriesPoint"], "group" | "values"> & {
  group?: Record<string, string>;
  values: Record<string, Measures>;
};

/** What the items of a history add up to, by spans of time. */
export type Summary<Owner = unknown> = Omit<Schemas["TradeSeries"], "customerId" | "points"> & { points: SummaryPoint[] } & Owner;

type SummaryQuery = operations["summariseTrades"]["parameters"]["query"];

/** `by`, the length of the spans, and what else chooses and groups items. */
export type SummaryParameters<Item = unknown, Filter extends string = never> = Omit<SummaryQuery, TradeFilter | "group"> & {
  group?: (keyof Item & string) | readonly (keyof Item & string)[];
} & Values<Item, Filter>;

/** What the items of all owners add up to, by spans of time: of those that were acknowledged before `upTo`, and of some later ones. */
export interface SummaryOfAll {
  by: SummaryOfAllParameters["by"];
  /** The time zone in which days, weeks and months begin. */
  tz: string;
  /** Absent while the time series is made. */
  upTo?: string;
  points: SummaryPoint[];
  links: Links;
}

/** Of a history with a time series: `by`, `from` and `to`, and what else chooses and groups items. */
export interface SummaryOfAllParameters {
  by: SummaryQuery["by"];
  tz?: string;
  from: string;
  to: string;
  group?: string | readonly string[];
  fill?: "none" | "zero";
  order?: "asc" | "desc";
  limit?: number;
  /** Properties of the time series that are filters. */
  [filter: string]: string | number | readonly string[] | undefined;
}

/** Without `fields`: an item is whole, and an export that breaks off is resumed by its `seq`. */
export type ExportParameters = Omit<NonNullable<operations["exportTradesAsNdjson"]["parameters"]["query"]>, "fields">;
