// What the service says and takes. The types of any history come from those of trades, which are generated from the
// service's own document: when the document changes, these change with it.

import type { components, operations } from "./openapi.js";

type Schemas = components["schemas"];

export type Trade = Schemas["Trade"];
export type NewTrade = Schemas["NewTrade"];
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

type Query = NonNullable<operations["listTrades"]["parameters"]["query"]>;

/** The parameters of the listings of every history. All others of a listing are filters. */
type Standard = "page" | "after" | "before" | "offset" | "limit" | "from" | "to" | "asOf" | "order";

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
type WindowAtOffset = Only<"limit" | "order" | "asOf", "offset">;
type SpanOfTime = AtCursor<"limit" | "order" | "from" | "to">;

/** A window, a span of time, or items with given values. */
export type WindowParameters<Item = unknown, Filter extends string = never> =
  | ((WindowOfMoment | WindowAtOffset) & Unfiltered<Filter>)
  | (SpanOfTime & Values<Item, Filter>);

/** What a listing shows: a page, a window, a span of time, or items with given values. What the service refuses together does not compile. */
export type ListParameters<Item = unknown, Filter extends string = never> =
  | (PageParameters & Unfiltered<Filter>)
  | WindowParameters<Item, Filter>;

/** The properties by which trades can be filtered. */
export type TradeFilter = Exclude<keyof Query, Standard>;

/** Without `fields`: an item is whole, and an export that breaks off is resumed by its `seq`. */
export type ExportParameters = Omit<NonNullable<operations["exportTradesAsNdjson"]["parameters"]["query"]>, "fields">;
