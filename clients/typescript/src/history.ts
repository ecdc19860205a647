import type { TradeInput, Stored, Trade, TradeFilter } from "./types.js";

/** Where the service is, and how it is reached. */
export interface Service {
  /** Its address: `https://api.example`, and the path that a proxy adds, if any. In a page, `""` is the page's own origin. */
  readonly baseUrl: string;
  /**
   * An access token or a key, sent with every request; or a function that returns it, called before each request. When the
   * service does not accept the token (401), the function is called once more, with that token, and the request is sent again
   * with the new one. An append waits for the function: it should fail by itself if it cannot get a token.
   */
  readonly token?: string | ((refused?: string) => string | Promise<string>) | undefined;
  /** Called instead of the global `fetch`. */
  readonly fetch?: typeof fetch;
}

/** The history of one owner: where it is, and the types of what it holds. `Filter` is the names of its filters. */
export interface History<Item extends Stored, NewItem, Owner = unknown, Filter extends string = string> {
  readonly service: Service;
  /** Its route, such as `/v1/customers/7/trades`. */
  readonly path: string;
  /** Only for the compiler: absent when the program runs. */
  readonly types?: { item: Item; newItem: NewItem; owner: Owner; filter: Filter };
}

/**
 * The history `items` of one owner, by the names of its definition:
 * `history<Message, MessageInput>(service, "rooms", "kitchen", "messages")`.
 *
 * `Owner` is the member that names the owner in answers, such as `{ roomId: string }`, and `Filter` the properties that the
 * definition names as filters, such as `"author"`.
 */
export function history<Item extends Stored, NewItem, Owner = unknown, Filter extends keyof Item & string = never>(
  service: Service,
  owners: string,
  owner: string | number,
  items: string,
): History<Item, NewItem, Owner, Filter> {
  return { service, path: "/v1/" + [owners, owner, items].map(encodeURIComponent).join("/") };
}

/** The trades of a customer: the history that is built in. */
export function trades(service: Service, customerId: number): History<Trade, TradeInput, { customerId: number }, TradeFilter> {
  return history(service, "customers", customerId, "trades");
}
