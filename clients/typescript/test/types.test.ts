import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { all, append, history, infiniteQuery, list, listQuery, live, liveBatches, liveMany, liveOwners, page, pages, summary, trades, windows } from "@pagebucket/client";
import type { Appended, History, Listing, TradeInput, Page, Trade } from "@pagebucket/client";

// The tests run in `build`, beside `src`.
const root = join(import.meta.dirname, "..");

test("the generated types are those of the OpenAPI document", (t) => {
  const directory = mkdtempSync(join(tmpdir(), "pagebucket-types-"));
  t.after(() => rmSync(directory, { recursive: true }));
  const [document, fresh] = [join(root, "../../openapi/openapi.json"), join(directory, "openapi.ts")];
  execFileSync(join(root, "node_modules/.bin/openapi-typescript"), [document, "--output", fresh], { stdio: "pipe" });
  const same = readFileSync(fresh, "utf8") === readFileSync(join(root, "src/openapi.ts"), "utf8");
  assert(same, "src/openapi.ts is out of date: run `npm run types`");
});

/** What the compiler checks. Nothing calls it. */
export async function typesAreChecked(): Promise<void> {
  const service = { baseUrl: "" };
  const mine = trades(service, 7);

  await append(mine, { type: "buy", ticker: "MDB", qty: 419 });
  // @ts-expect-error: a trade has a quantity.
  await append(mine, { type: "buy", ticker: "MDB" });
  const incomplete = { type: "buy" as const, ticker: "MDB" };
  // @ts-expect-error: the same. What is appended does not decide what may be appended.
  await append(mine, incomplete);
  // @ts-expect-error: "gift" is no type of a trade.
  await append(mine, [{ type: "gift", ticker: "MDB", qty: 419 }]);
  // @ts-expect-error: new trades have no sequence number.
  await append(mine, { seq: 1, type: "buy", ticker: "MDB", qty: 419 });

  const { customerId, items, totalItems } = await list(mine);
  const read: { customerId: number; ticker: string | undefined; totalItems: number | undefined } = {
    customerId,
    ticker: items[0]?.ticker,
    totalItems,
  };
  void read;
  for await (const { customerId, qty } of all(mine)) void (customerId * qty);
  // @ts-expect-error: a trade has no text.
  for await (const { text } of all(mine)) void text;
  for await (const { seq, qty } of live(mine, { after: 34 })) void (seq * qty);
  for await (const { items, position } of liveBatches(mine)) void [items[0]?.ticker, position + 1];
  for await (const { history, items, position, gone } of liveMany([{ history: mine, after: 34 }, { history: trades(service, 8) }]))
    void [history.path, items[0]?.ticker, position + 1, gone?.firstSeq];
  for await (const { owners, position } of liveOwners<{ customerId: number }>(service, "trades"))
    void [owners[0]?.owner.customerId, owners[0]?.totalItems, position?.length];
  // @ts-expect-error: a place of the owners is no number.
  liveOwners(service, "trades", { position: 34 });
  // @ts-expect-error: a live history has no filters.
  live(mine, { ticker: "AMD" });
  // @ts-expect-error: a listing has no such parameter.
  await list(mine, { pages: 1 });

  // A page, a window, a span of time, or items with given values.
  const span = { from: "2026-01-01T00:00:00Z", to: "2026-02-01T00:00:00Z" };
  await list(mine, { page: 1, order: "desc" });
  await list(mine, { limit: 20, order: "desc" });
  await list(mine, { after: 3, limit: 20, asOf: 34 });
  await list(mine, { before: 3 });
  await list(mine, { offset: 20, limit: 10, asOf: 34, order: "desc" });
  await list(mine, { ...span, after: 3, limit: 20 });
  await summary(mine, { by: "1M", group: "ticker", type: ["buy", "sell"], ...span });
  // @ts-expect-error: a summary needs the length of its spans.
  await summary(mine, { group: "ticker" });
  // @ts-expect-error: there are no years.
  await summary(mine, { by: "1y" });
  await list(mine, { ticker: "AMD", type: "buy", before: 30, limit: 20, order: "desc" });
  for await (const _ of windows(mine, { ticker: "AMD", order: "desc" }));
  await list(mine, { after: 3, wait: 20, limit: 20, order: "desc" });
  // @ts-expect-error: what is waited for comes after a position.
  await list(mine, { limit: 20, wait: 20 });
  // @ts-expect-error: a filter does not wait.
  await list(mine, { after: 3, wait: 20, ticker: "AMD" });
  // @ts-expect-error: a page is not a window.
  await list(mine, { page: 1, after: 3, offset: 4 });
  // @ts-expect-error: a page has its length.
  await list(mine, { page: 1, limit: 20 });
  // @ts-expect-error: one cursor.
  await list(mine, { after: 3, before: 9 });
  // @ts-expect-error: a cursor or an offset.
  await list(mine, { after: 3, offset: 4 });
  // @ts-expect-error: a moment is that of a cursor or an offset.
  await list(mine, { asOf: 34, limit: 20 });
  // @ts-expect-error: a span of time has no offset.
  await list(mine, { ...span, offset: 4 });
  // @ts-expect-error: a page has no filters.
  await list(mine, { page: 1, ticker: "AMD" });
  // @ts-expect-error: an offset has no filters.
  listQuery(mine, { offset: 4, limit: 10, ticker: "AMD" });
  // @ts-expect-error: the price is no filter.
  await list(mine, { price: "15.54" });
  // @ts-expect-error: no trade has this type.
  infiniteQuery(mine, { type: "gift" });
  // @ts-expect-error: a page is not a window.
  windows(mine, { page: 2 });
  // @ts-expect-error: a cursor is not a page.
  pages(mine, { after: 3 });

  interface Message {
    seq: number;
    text: string;
  }
  const room = history<Message, Pick<Message, "text">, { roomId: string }>(service, "rooms", "kitchen", "messages");
  await append(room, [{ text: "hello" }]);
  // @ts-expect-error: trades are not messages.
  await append(room, { type: "buy", ticker: "MDB", qty: 419 });
  const { roomId, full } = await page(room, 1);
  void [roomId.length, full];
  // @ts-expect-error: the text is no filter, because none is named.
  await list(room, { text: "hello" });
  const filtered = history<Message, Pick<Message, "text">, { roomId: string }, "text">(service, "rooms", "kitchen", "messages");
  await list(filtered, { text: "hello", limit: 10 });
  // @ts-expect-error: its value is a text.
  await list(filtered, { text: 7 });
  // @ts-expect-error: a message has no author.
  history<Message, Pick<Message, "text">, unknown, "author">(service, "rooms", "kitchen", "messages");
  // What takes any history takes those with filters.
  const any: History<Message, Pick<Message, "text">> = filtered;
  await list(any, { limit: 10 });
  // @ts-expect-error: of any history no filter is known.
  await list(any, { text: "hello" });
  // @ts-expect-error: an item has a sequence number.
  history<{ text: string }, { text: string }>(service, "rooms", "kitchen", "messages");
}

/** The types of any history, of trades, are the generated ones. */
type Same<A, B> = [A, B] extends [B, A] ? true : never;
type Schemas = import("../dist/openapi.js").components["schemas"];
type Customer = { customerId: number };
export const same: [
  Same<Listing<Trade, Customer>, Schemas["TradeListing"]>,
  Same<Page<Trade, Customer>, Schemas["TradePage"]>,
  Same<Appended<Customer>, Schemas["AppendedTrades"]>,
  Same<TradeInput, Schemas["TradeInput"]>,
] = [true, true, true, true];
