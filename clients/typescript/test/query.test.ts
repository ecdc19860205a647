import assert from "node:assert/strict";
import { test } from "node:test";

import { InfiniteQueryObserver, QueryClient, QueryObserver } from "@tanstack/query-core";

import { followQuery, GoneError, historyKey, infiniteQuery, listQuery, pageQuery, trades, type Listing, type Trade } from "@pagebucket/client";

import { json, scripted, type Answer } from "./scripted.js";

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

/** A window as the service shows it. */
function windowOf(order: "asc" | "desc", seqs: number[], totalItems: number, links = {}): Answer {
  const items = seqs.map((seq) => ({ seq, ticker: "MDB" }));
  return json({ customerId: 7, order, totalItems, totalPages: 1, items, links: { newer: `/v1?after=${totalItems}&limit=2`, ...links } });
}

/** Items, each in an event of its own, after which the next items are deleted. */
function events(...seqs: number[]): string {
  const items = seqs.map((seq) => `data: ${JSON.stringify({ items: [{ seq, ticker: "MDB" }] })}\n\n`);
  return items.join("") + 'event: gone\ndata: {"title":"Retired","status":410,"detail":"It is retired."}\n\n';
}

/** A stream of them. */
function stream(...seqs: number[]): Answer {
  return (response) => response.writeHead(200, { "content-type": "text/event-stream" }).end(events(...seqs));
}

function seqs(listing: { items: { seq: number }[] } | undefined): number[] | undefined {
  return listing?.items.map(({ seq }) => seq);
}

test("what is appended joins the end of a window in the cache", async (t) => {
  for (const [order, shown, grown] of [["desc", [4, 3], [6, 5, 4, 3]], ["asc", [3, 4], [3, 4, 5, 6]], ["desc", [], [2, 1]]] as const) {
    const total = Math.max(0, ...shown);
    const { baseUrl, asked } = await scripted(t, windowOf(order, [...shown], total), stream(total + 1, total + 2));
    const client = queryClient();
    const history = trades({ baseUrl }, 7);
    const query = listQuery(history, { order, limit: 2 });
    await assert.rejects(followQuery(history, client, query), GoneError);
    const data = client.getQueryData<Trades>(query.queryKey);
    assert.deepEqual([seqs(data), data?.totalItems, data?.links.newer], [grown, total + 2, `/v1?after=${total + 2}&limit=2`]);
    assert.deepEqual(asked.map(({ url }) => url.split("/trades")[1]), [`?order=${order}&limit=2`, `/live?after=${total}`]);
    assert.equal(client.getQueryState(query.queryKey)?.isInvalidated, false);
  }
});

test("what is appended joins the page of an infinite query that shows the end", async (t) => {
  const older = windowOf("desc", [2, 1], 4);
  const { baseUrl } = await scripted(t, windowOf("desc", [4, 3], 4, { next: "/v1/customers/7/trades?before=3" }), older, stream(5, 6));
  const client = queryClient();
  const history = trades({ baseUrl }, 7);
  const query = infiniteQuery(history, { order: "desc", limit: 2 });
  await client.fetchInfiniteQuery({ ...query, pages: 2 });
  await assert.rejects(followQuery(history, client, query), GoneError);
  const pages = client.getQueryData<{ pages: Trades[] }>(query.queryKey)?.pages;
  assert.deepEqual(pages?.map(seqs), [[6, 5, 4, 3], [2, 1]]);
});

test("a listing that cannot be told from the items is asked for again", async (t) => {
  const page = json({ customerId: 7, order: "asc", page: 1, totalItems: 2, items: [{ seq: 1 }, { seq: 2 }], links: {} });
  const middle = windowOf("asc", [1, 2], 4);
  const found = json({ customerId: 7, order: "asc", items: [{ seq: 1 }], links: { newer: "/v1?after=1" } });
  const position: Answer = (response) =>
    response.writeHead(200, { "content-type": "text/event-stream" }).end('event: position\ndata: {"totalItems":4}\n\n' + events());
  for (const [listing, live] of [[page, stream(3)], [middle, stream(5)], [found, position]] as const) {
    const { baseUrl } = await scripted(t, listing, live);
    const client = queryClient();
    const history = trades({ baseUrl }, 7);
    const query = listQuery(history);
    await assert.rejects(followQuery(history, client, query), GoneError);
    assert.equal(client.getQueryState(query.queryKey)?.isInvalidated, true);
  }
});

test("a newer answer in the cache does not get an item twice, and one that lacks items is asked for again", async (t) => {
  for (const [answered, shown, invalid] of [[[1, 2, 3], [1, 2, 3, 4], false], [[1], [1], true]] as const) {
    let rest!: () => void;
    const live: Answer = (response) => {
      response.writeHead(200, { "content-type": "text/event-stream" }).write('data: {"items":[{"seq":2}]}\n\n');
      rest = () => response.end(events(3, 4));
    };
    const { baseUrl } = await scripted(t, windowOf("asc", [1], 1), live);
    const client = queryClient();
    const history = trades({ baseUrl }, 7);
    const query = listQuery(history, { limit: 10 });
    const cached = () => seqs(client.getQueryData<Trades>(query.queryKey));
    const following = followQuery(history, client, query);
    while (cached()?.length !== 2) await new Promise(setImmediate);
    const items = answered.map((seq) => ({ seq }) as Trade);
    client.setQueryData<Trades>(query.queryKey, (before) => ({ ...before!, totalItems: items.length, items }));
    rest();
    await assert.rejects(following, GoneError);
    assert.deepEqual([cached(), client.getQueryState(query.queryKey)?.isInvalidated], [shown, invalid]);
  }
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
