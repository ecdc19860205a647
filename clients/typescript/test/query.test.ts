import assert from "node:assert/strict";
import { test } from "node:test";

import { InfiniteQueryObserver, QueryClient, QueryObserver } from "@tanstack/query-core";

import { historyKey, infiniteQuery, listQuery, pageQuery, trades, type Listing, type Trade } from "@pagebucket/client";

import { json, scripted } from "./scripted.js";

type Trades = Listing<Trade, { customerId: number }>;

function listing(seq: number, links: object) {
  return json({ customerId: 7, order: "asc", items: [{ seq, ticker: "MDB" }], links });
}

function queryClient(): QueryClient {
  return new QueryClient({ defaultOptions: { queries: { retry: false, gcTime: Infinity } } });
}

test("a listing is a query, which its history's key invalidates", async (t) => {
  const { baseUrl, asked } = await scripted(t, listing(1, {}));
  const client = queryClient();
  const query = listQuery(trades({ baseUrl }, 7), { order: "desc" });
  const { items }: Trades = await client.fetchQuery(query);
  assert.equal(items[0]?.ticker, "MDB");
  assert.equal(asked[0]?.url, "/v1/customers/7/trades?order=desc");
  for (const [customer, invalid] of [[8, false], [7, true]] as const) {
    await client.invalidateQueries({ queryKey: historyKey(trades({ baseUrl }, customer)) });
    assert.equal(client.getQueryState(query.queryKey)?.isInvalidated, invalid);
  }
});

test("an infinite query follows the links", async (t) => {
  const link = (page: number) => `/v1/customers/7/trades?page=${page}`;
  const { baseUrl, asked } = await scripted(t, listing(11, { prev: link(1), next: link(3) }), listing(21, {}), listing(1, {}));
  const client = queryClient();
  const observer = new InfiniteQueryObserver(client, infiniteQuery(trades({ baseUrl }, 7), { page: 2 }));
  const seen = async (result: Promise<{ data?: { pages: Trades[] } | undefined }>) =>
    (await result).data?.pages.map(({ items }) => items[0]?.seq);
  // The observer fetches nothing by itself: nobody has subscribed to it.
  assert.deepEqual(await seen(observer.refetch()), [11]);
  assert.deepEqual(await seen(observer.fetchNextPage()), [11, 21]);
  assert.equal(observer.getCurrentResult().hasNextPage, false);
  assert.deepEqual(await seen(observer.fetchPreviousPage()), [1, 11, 21]);
  assert.equal(observer.getCurrentResult().hasPreviousPage, false);
  assert.deepEqual(asked.map(({ url }) => url), [link(2), link(3), link(1)]);
});

test("a full page is asked for once, another page each time", async (t) => {
  for (const full of [true, false]) {
    const { baseUrl, asked } = await scripted(t, json({ customerId: 7, page: 1, full, items: [] }));
    const client = queryClient();
    const query = pageQuery(trades({ baseUrl }, 7), 1);
    for (const _ of [1, 2]) assert.equal((await client.fetchQuery(query)).full, full);
    assert.equal(asked.length, full ? 1 : 2);
    assert.equal(asked[0]?.url, "/v1/customers/7/trades/pages/1");
  }
});

test("a query that is no longer wanted is cancelled", async (t) => {
  const { baseUrl, asked } = await scripted(t, () => void client.cancelQueries());
  const client = queryClient();
  await assert.rejects(client.fetchQuery(listQuery(trades({ baseUrl }, 7))));
  await asked[0]?.closed;
});

/** What the compiler checks. Nothing calls it. */
export function typesAreChecked(client: QueryClient): void {
  const history = trades({ baseUrl: "" }, 7);
  new QueryObserver(client, { ...listQuery(history), select: ({ items }) => items.map(({ ticker }) => ticker.length) });
  new QueryObserver(client, { ...pageQuery(history, 1), select: ({ full }): boolean => full });
  // @ts-expect-error: a trade has no text.
  new QueryObserver(client, { ...listQuery(history), select: ({ items }) => items.map(({ text }) => text) });
  const { data } = new InfiniteQueryObserver(client, infiniteQuery(history)).getCurrentResult();
  const numbers: number[] | undefined = data?.pages.flatMap(({ items }) => items.map(({ qty }) => qty));
  void numbers;
  const cached: Trades | undefined = client.getQueryData<Trades>(listQuery(history).queryKey);
  void cached;
}
