import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { all, append, history, list, page, trades, type Appended, type Listing, type NewTrade, type Page, type Trade } from "@pagebucket/client";

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
  // @ts-expect-error: a listing has no such parameter.
  await list(mine, { pages: 1 });

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
  Same<NewTrade, Schemas["NewTrade"]>,
] = [true, true, true, true];
