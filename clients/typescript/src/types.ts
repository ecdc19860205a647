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

type Query = Omit<NonNullable<operations["listTrades"]["parameters"]["query"]>, "ticker" | "type">;

/** Values that items must have, one or one of several. The service refuses a property that its definition does not name as a filter. */
type Filters<Item> = {
  [Name in keyof Item as Item[Name] extends string | undefined ? Name : never]?: Item[Name] | readonly NonNullable<Item[Name]>[];
};

/** Which page, window or span of time is read, or which items by their values. */
export type ListParameters<Item = unknown> = Query | (Query & Filters<Item>);
export type PageParameters = Pick<Query, "page" | "order">;
export type WindowParameters<Item = unknown> = Omit<Query, "page"> | (Omit<Query, "page"> & Filters<Item>);
/** Without `fields`: an item is whole, and an export that breaks off is resumed by its `seq`. */
export type ExportParameters = Omit<NonNullable<operations["exportTradesAsNdjson"]["parameters"]["query"]>, "fields">;
