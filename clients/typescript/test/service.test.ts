import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";

import {
  all,
  append,
  history,
  infiniteQuery,
  item,
  list,
  live,
  liveMany,
  liveOwners,
  newKey,
  NotAcknowledgedError,
  page,
  pages,
  ProblemError,
  summaryOfAll,
  trades,
  windows,
  type Listing,
  type TradeInput,
  type Trade,
} from "@pagebucket/client";
import { QueryClient } from "@tanstack/query-core";
import { EventSource } from "eventsource";

import { proxy, randomCuts } from "./proxy.js";
import { RealService, skip } from "./service.js";

/** Trades of consecutive days; the quantity says which one it is. */
function days(count: number): TradeInput[] {
  const date = (day: number) => new Date(Date.UTC(2026, 0, day)).toISOString();
  return Array.from({ length: count }, (_, day) => ({ type: "buy", ticker: "MDB", qty: day + 1, price: "15.50", date: date(day + 1) }));
}

async function collect<T>(all: AsyncIterable<T>): Promise<T[]> {
  const collected = [];
  for await (const one of all) collected.push(one);
  return collected;
}

function seqs(listings: Listing<Trade>[]): number[][] {
  return listings.map(({ items }) => items.map(({ seq }) => seq));
}

function numbers(first: number, last: number): number[] {
  const step = first <= last ? 1 : -1;
  return Array.from({ length: Math.abs(last - first) + 1 }, (_, index) => first + index * step);
}

suite("with the real service", { skip }, () => {
  let service: RealService;
  let customers = 0;
  before(async () => {
    service = await new RealService().start();
  });
  after(() => service.remove());

  /** The trades of a new customer. */
  function fresh(baseUrl = service.baseUrl) {
    return trades({ baseUrl }, ++customers);
  }

  test("a time series adds up what all owners have appended", async () => {
    const execution = (symbol: string, quantity: string) => ({
      executionId: "E-1",
      orderId: crypto.randomUUID(),
      symbol,
      side: "buy",
      quantity,
      price: "10.00",
      currency: "EUR",
      executedAt: "2026-02-03T10:30:00Z",
    });
    for (const symbol of ["BTC-EUR", "ETH-EUR"]) {
      const account = history({ baseUrl: service.baseUrl }, "accounts", crypto.randomUUID(), "executions");
      await append(account, [execution(symbol, "0.50000000"), execution("BTC-EUR", "1.25000000")]);
    }
    const which = { by: "1h", from: "2026-02-03T00:00:00Z", to: "2026-02-04T00:00:00Z", group: "symbol", limit: 1 } as const;
    const deadline = performance.now() + 60_000;
    const sums = async () => {
      const first = await summaryOfAll({ baseUrl: service.baseUrl }, "executions", { ...which, limit: 10 });
      const points = first.points.map(({ group, count, values }) => [group?.["symbol"], count, values["quantity"]?.sum]);
      return [first.upTo !== undefined, points];
    };
    const expected = [true, [["BTC-EUR", 3, "3.00000000"], ["ETH-EUR", 1, "0.50000000"]]];
    while (JSON.stringify(await sums()) !== JSON.stringify(expected)) {
      assert.ok(performance.now() < deadline, `${await sums()}`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    const ofBtc = await summaryOfAll({ baseUrl: service.baseUrl }, "executions", { ...which, symbol: "BTC-EUR" });
    assert.equal(ofBtc.points[0]?.count, 3);
    if (ofBtc.links.next) assert.deepEqual((await summaryOfAll({ baseUrl: service.baseUrl }, "executions", ofBtc.links.next)).points, []);
  });

  test("what is appended is listed, in pages of either order", async () => {
    const history = fresh();
    const first = await append(history, days(1)[0]!);
    assert.deepEqual([first.customerId, first.ranges, first.totalItems], [customers, [{ firstSeq: 1, lastSeq: 1 }], 1]);
    const rest = await append(history, days(25).slice(1));
    assert.deepEqual([rest.ranges, rest.totalItems, rest.totalPages], [[{ firstSeq: 2, lastSeq: 25 }], 25, 3]);

    const ascending = await collect(pages(history));
    assert.deepEqual(seqs(ascending), [numbers(1, 10), numbers(11, 20), numbers(21, 25)]);
    assert.deepEqual(ascending.map(({ page, full, totalItems }) => [page, full, totalItems]), [[1, true, 25], [2, true, 25], [3, false, 25]]);
    assert.deepEqual(seqs(await collect(pages(history, { order: "desc" }))), [numbers(25, 21), numbers(20, 11), numbers(10, 1)]);
    assert.deepEqual(seqs(await collect(pages(history, { page: 2 }))), [numbers(11, 20), numbers(21, 25)]);
    const { seq, qty, price } = ascending[2]!.items[4]!;
    assert.deepEqual([seq, qty, price], [25, 25, "15.50"]);

    const stored = await page(history, 2);
    assert.deepEqual([stored.full, stored.firstSeq, stored.count, stored.items[0]?.seq], [true, 11, 10, 11]);
    assert.deepEqual([(await item(history, 21)).page, (await item(history, 21)).qty], [3, 21]);
  });

  test("windows lead to both ends, to newer items, and through a span of time", async () => {
    const history = fresh();
    await append(history, days(25));
    const ascending = await collect(windows(history, { limit: 7 }));
    assert.deepEqual(seqs(ascending), [numbers(1, 7), numbers(8, 14), numbers(15, 21), numbers(22, 25)]);
    assert.deepEqual(seqs(await collect(windows(history, { order: "desc", before: 12, limit: 10 }))), [numbers(11, 2), [1]]);
    assert.deepEqual(seqs(await collect(windows(history))), [numbers(1, 25)]);
    const march = { from: "2026-01-05T00:00:00Z", to: "2026-01-20T00:00:00Z", limit: 10 };
    assert.deepEqual((await collect(windows(history, march))).flatMap(({ items }) => items.map(({ qty }) => qty)), numbers(5, 19));

    const newer = ascending.at(-1)!.links.newer!;
    assert.deepEqual((await list(history, newer)).items, []);
    await append(history, days(2));
    assert.deepEqual(seqs([await list(history, newer)]), [[26, 27]]);

    await append(history, { type: "sell", ticker: "AMD", qty: 28 });
    assert.deepEqual(seqs(await collect(windows(history, { ticker: "AMD", type: "sell" }))), [[28]]);
    const several = { ticker: ["AMD", "XYZ"], type: ["sell", "buy"], from: "2026-01-05T00:00:00Z", limit: 1 } as const;
    assert.deepEqual(seqs((await collect(windows(history, several))).filter(({ items }) => items.length)), [[28]]);
    // @ts-expect-error: "gift" is no type of a trade
    await assert.rejects(list(history, { type: ["buy", "gift"] }), ProblemError);
    // @ts-expect-error: no text, so no filter
    await assert.rejects(list(history, { qty: 28 }), ProblemError);
  });

  test("a walk sees every item once, whatever is appended meanwhile", async () => {
    const history = fresh();
    await append(history, days(15));
    const seen = [];
    for await (const { items } of windows(history, { order: "desc", limit: 4 })) {
      seen.push(...items.map(({ seq }) => seq));
      await append(history, days(3));
    }
    assert.deepEqual(seen, numbers(15, 1));
  });

  test("a history of another definition", async () => {
    interface Message {
      seq: number;
      author: string;
      text: string;
      sentAt: string;
    }
    const room = history<Message, Pick<Message, "author" | "text">, { roomId: string }>(
      { baseUrl: service.baseUrl },
      "rooms",
      "kitchen",
      "messages",
    );
    const { roomId, totalPages } = await append(room, numbers(1, 60).map((number) => ({ author: "ann", text: `Nummer ${number} – 🎈` })));
    assert.deepEqual([roomId, totalPages], ["kitchen", 2]);
    const texts = (await collect(all(room))).map(({ roomId, text }) => `${roomId}: ${text}`);
    assert.deepEqual(texts, numbers(1, 60).map((number) => `kitchen: Nummer ${number} – 🎈`));
    assert.deepEqual((await collect(pages(room))).map(({ roomId, items }) => [roomId, items.length]), [["kitchen", 50], ["kitchen", 10]]);
  });

  test("a refusal says what is wrong, and has the request's id", async () => {
    const history = fresh();
    const wrong = [{ ...days(1)[0]!, qty: 1.5 }, { ...days(1)[0]!, ticker: "much too long for a ticker" }];
    await assert.rejects(append(history, wrong), (error) => {
      assert(error instanceof ProblemError);
      assert.deepEqual([error.type, error.title, error.status], ["/problems#invalid-item", "Invalid item", 422]);
      assert.deepEqual(error.errors.map(({ pointer }) => pointer), ["/0/qty", "/1/ticker"]);
      assert.match(error.requestId!, /^[0-9a-f]{16}$/);
      assert.equal(error.requestId, error.problem.requestId);
      assert.match(error.detail, /^`\/0\/qty` must be a whole number .*; 1 more fault is in `errors`\.$/);
      return true;
    });
    await assert.rejects(page(history, 9), (error) => error instanceof ProblemError && error.type === "/problems#page-not-found");
    await assert.rejects(list(history, { page: 0 }), (error) => error instanceof ProblemError && error.errors[0]?.parameter === "page");
  });

  test("items whose answers are lost are stored once", async (t) => {
    // The first three connections are cut when the service has answered.
    const { baseUrl } = await proxy(t, service.baseUrl, (n) => [0, 0, 40][n] ?? Infinity);
    const answer = await append(fresh(baseUrl), days(12), { expectedSeq: 0 });
    assert.deepEqual([answer.ranges, answer.totalItems], [[{ firstSeq: 1, lastSeq: 12 }], 12]);
    const history = trades(service, customers);
    assert.equal((await list(history)).totalItems, 12);
    await assert.rejects(append(history, days(1), { expectedSeq: 0 }), (error) => {
      assert(error instanceof ProblemError);
      assert.deepEqual([error.type, error.problem.totalItems], ["/problems#unexpected-seq", 12]);
      return true;
    });
  });

  test("a key that was made before survives the client", async (t) => {
    const broken = await proxy(t, service.baseUrl, () => 0);
    const key = newKey();
    const lost = await append(fresh(broken.baseUrl), days(3), { key, deadline: 2000 }).catch((error: unknown) => error);
    assert(lost instanceof NotAcknowledgedError);
    assert.equal(lost.key, key);
    assert(broken.connections > 1);
    // As after a reload of the page: only the key and the items are left.
    const history = trades(service, customers);
    assert.deepEqual((await append(history, days(3), { key: lost.key })).ranges, [{ firstSeq: 1, lastSeq: 3 }]);
    assert.equal((await list(history)).totalItems, 3);
    await assert.rejects(append(history, days(4), { key }), (error) => {
      assert(error instanceof ProblemError);
      assert.deepEqual([error.type, error.key], ["/problems#idempotency-key-reused", key]);
      return true;
    });
  });

  test("a whole history comes once, whatever is cut", async (t) => {
    const count = 3000;
    const direct = fresh();
    for (let first = 0; first < count; first += 1000) await append(direct, days(count).slice(first, first + 1000));
    // The bytes are those of a compressed answer.
    const proxied = await proxy(t, service.baseUrl, (n) => [100, 4000, 0, 4001][n] ?? Infinity);
    // How many connections a request needs is not the client's choice: requests are counted.
    let requests = 0;
    const counted = (...request: Parameters<typeof fetch>) => {
      requests += 1;
      return fetch(...request);
    };
    const found = await collect(all(trades({ baseUrl: proxied.baseUrl, fetch: counted }, customers)));
    assert.deepEqual(found.map(({ seq }) => seq), numbers(1, count));
    assert.deepEqual(found.map(({ qty }) => qty), numbers(1, count));
    assert.equal(found[0]?.customerId, customers);
    assert(requests > 1 && requests <= 5, `${requests}`);
    assert.deepEqual((await collect(all(direct, { after: count - 2 }))).map(({ seq }) => seq), [count - 1, count]);

    const again = await proxy(t, service.baseUrl, () => 2000);
    requests = 0;
    await assert.rejects(collect(all(trades({ baseUrl: again.baseUrl, fetch: counted }, customers), {}, { resumes: 2 })), TypeError);
    assert.equal(requests, 3);
  });

  test("a live history comes once and in order, whatever is cut, to this client and to EventSource", async (t) => {
    const history = fresh();
    const cuts = randomCuts(t);
    const [ours, theirs] = [await proxy(t, service.baseUrl, cuts), await proxy(t, service.baseUrl, cuts)];
    const count = 400;
    async function read() {
      const found: Trade[] = [];
      for await (const trade of live(trades({ baseUrl: ours.baseUrl }, customers), { after: 0 })) if (found.push(trade) === count) break;
      return found;
    }
    function listen() {
      const source = new EventSource(`${theirs.baseUrl}${history.path}/live?after=0`);
      t.after(() => source.close());
      const found: Trade[] = [];
      return new Promise<Trade[]>((resolve) => {
        source.onmessage = ({ data }) => found.push(...JSON.parse(data).items) === count && resolve(found);
      });
    }
    const reading = Promise.all([read(), listen()]);
    const items = days(count);
    for (let first = 0; first < count; first += 4) await append(history, items.slice(first, first + 4));
    const stored = (await collect(all(history))).map(({ customerId: _, ...trade }) => trade);
    for (const found of await reading) assert.deepEqual(found, stored);
    assert.deepEqual(stored.map(({ seq }) => seq), numbers(1, count));
    assert(ours.connections > 1 && theirs.connections > 1, `${ours.connections}, ${theirs.connections}`);
  });

  test("several histories, and who has something new, come live whatever is cut", async (t) => {
    const cut = await proxy(t, service.baseUrl, randomCuts(t));
    const mine = [fresh(cut.baseUrl), fresh(cut.baseUrl), fresh(cut.baseUrl)];
    const ids = mine.map(({ path }) => Number(path.split("/")[3]));
    const count = 120;
    const followed = liveOwners<{ customerId: number }>({ baseUrl: cut.baseUrl }, "trades");
    assert((await followed.next()).value?.position, "then the owners are listed");
    const [first, second, third] = mine as [(typeof mine)[0], (typeof mine)[0], (typeof mine)[0]];
    await append(first, days(count / 2));
    async function readAll() {
      const found = mine.map(() => [] as number[]);
      for await (const { history, items } of liveMany([{ history: first, after: 0 }, { history: second, after: 0 }, { history: third }])) {
        found[mine.indexOf(history as (typeof mine)[0])]!.push(...items.map(({ seq }) => seq));
        if (found[0]!.length === count && found[1]!.length === count) return found;
      }
      return undefined;
    }
    async function readTotals() {
      const totals: Record<number, number> = {};
      for await (const { owners } of followed) {
        for (const { owner, totalItems } of owners) totals[owner.customerId] = totalItems;
        if (ids.slice(0, 2).every((id) => totals[id] === count)) return;
      }
    }
    const reading = Promise.all([readAll(), readTotals()]);
    for (let n = 0; n < count; n += 4) {
      await append(second, days(4));
      if (n < count / 2) await append(first, days(4));
    }
    const [found] = await reading;
    assert.deepEqual(found, [numbers(1, count), numbers(1, count), []]);
    assert(cut.connections > 2, `${cut.connections}`);
  });

  test("TanStack Query reads all pages", async () => {
    const history = fresh();
    await append(history, days(25));
    const client = new QueryClient();
    const { pages } = await client.fetchInfiniteQuery({ ...infiniteQuery(history, { order: "desc" }), pages: 9 });
    assert.deepEqual(seqs(pages), [numbers(25, 21), numbers(20, 11), numbers(10, 1)]);
    client.clear();
  });

  test("an append waits for a service that stops and comes back", async () => {
    const history = fresh();
    await append(history, days(1));
    await service.stop();
    const appended = append(history, days(2), { deadline: 60_000 });
    await service.start();
    assert.deepEqual((await appended).ranges, [{ firstSeq: 2, lastSeq: 3 }]);
  });
});
