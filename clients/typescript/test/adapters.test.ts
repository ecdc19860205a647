// What the adapters share, against a scripted server. Each adapter with its library: clients/typescript-adapters.

import assert from "node:assert/strict";
import { suite, test } from "node:test";

import { trades } from "@pagebucket/client";
import { serverSideDatasource } from "@pagebucket/client/adapters/ag-grid";
import { dataSource } from "@pagebucket/client/adapters/mui-x";
import { dataProvider as reactAdmin } from "@pagebucket/client/adapters/react-admin";
import { dataProvider } from "@pagebucket/client/adapters/refine";
import { tableRows } from "@pagebucket/client/adapters/tanstack-table";

import { json, problem, scripted } from "./scripted.js";

const rows = (totalItems: number) => json({ customerId: 7, order: "desc", items: [], totalItems, links: {} });
const stored = json({ customerId: 7, ranges: [{ firstSeq: 35, lastSeq: 35 }] }, 201);

/** A page of a data source, newest first. */
function request(page: number, pageSize = 10) {
  const start = page * pageSize;
  return { start, end: start + pageSize - 1, sortModel: [{ field: "seq", sort: "desc" }], filterModel: { items: [] } };
}

suite("a datasource", () => {
  test("shows one moment, from its first read on, until it is refreshed", async (t) => {
    const { baseUrl, asked } = await scripted(t, rows(34), rows(34), rows(34), rows(35));
    const source = dataSource(trades({ baseUrl }, 7));
    await source.getRows(request(2));
    await source.getRows(request(0));
    assert.deepEqual(await source.getRows({ ...request(1), sortModel: [] }), { rows: [], rowCount: 34 });
    source.refresh();
    assert.equal((await source.getRows(request(1))).rowCount, 35);
    await source.getRows(request(2));
    assert.deepEqual(asked.map(({ url }) => url.split("?")[1]), [
      "offset=20&limit=10&order=desc",
      "offset=0&limit=10&order=desc&asOf=34",
      "offset=10&limit=10&order=asc&asOf=34",
      "offset=10&limit=10&order=desc",
      "offset=20&limit=10&order=desc&asOf=35",
    ]);
  });

  test("reads that begin together have one first, also when that fails or finds nothing", async (t) => {
    for (const [first, result] of [[problem(500, "internal-error"), "rejected"], [rows(0), "fulfilled"]] as const) {
      const { baseUrl, asked } = await scripted(t, first, rows(34));
      const source = dataSource(trades({ baseUrl }, 7));
      const read = await Promise.allSettled([0, 1, 2, 3].map((page) => source.getRows(request(page))));
      assert.deepEqual(read.map(({ status }) => status), [result, "fulfilled", "fulfilled", "fulfilled"]);
      assert.deepEqual(asked.map(({ url }) => /&asOf=34/.test(url)), [false, false, true, true]);
    }
  });

  test("shows what it has appended", async (t) => {
    const { baseUrl, asked } = await scripted(t, rows(34), stored, rows(35));
    const source = serverSideDatasource(trades({ baseUrl }, 7));
    const state = { startRow: 0, endRow: 10, sortModel: [], filterModel: null, rowGroupCols: [], pivotCols: [] };
    const count = () =>
      new Promise((resolve, reject) => source.getRows({ request: state, success: ({ rowCount }) => resolve(rowCount), fail: () => reject() }));
    assert.equal(await count(), 34);
    await source.create({ type: "buy", ticker: "MDB", qty: 419 }, { key: "mine" });
    assert.equal(asked[1]?.headers["idempotency-key"], "mine");
    assert.equal(await count(), 35);
    assert.equal(asked[2]?.url, "/v1/customers/7/trades?offset=0&limit=10&order=asc");
  });
});

test("tables of the same history have queries of their own", () => {
  const history = trades({ baseUrl: "" }, 7);
  const state = { pagination: { pageIndex: 1, pageSize: 10 } };
  const [one, other] = [tableRows(history), tableRows(history)];
  assert.deepEqual(one.query(state).queryKey, one.query(state).queryKey);
  assert.notDeepEqual(one.query(state).queryKey, other.query(state).queryKey);
});

suite("the lists of a data provider", () => {
  const list = (currentPage: number, order = "desc", pageSize = 10, customer = 7) =>
    ({ resource: "trades", pagination: { currentPage, pageSize }, sorters: [{ field: "id", order }], meta: { customer } });

  test("show with page 1 the newest items, with other pages the moment of their own list", async (t) => {
    const { baseUrl, asked } = await scripted(t, rows(34), rows(34), rows(35), rows(35), rows(36), rows(34), rows(37), rows(37));
    const { getList } = dataProvider((_, { customer }) => trades({ baseUrl }, customer));
    for (const shown of [list(1), list(2), list(1, "asc"), list(1, "desc", 5), list(1, "desc", 10, 8), list(3), list(1), list(2)]) await getList(shown);
    const asOf = asked.map(({ url }) => Number(new URL(url, baseUrl).searchParams.get("asOf")));
    assert.deepEqual(asOf, [0, 34, 0, 0, 0, 34, 0, 37]);
  });

  test("show what the provider has appended to their history", async (t) => {
    const { baseUrl, asked } = await scripted(t, rows(34), rows(50), stored, rows(35), rows(50));
    const { getList, create } = dataProvider((_, { customer }) => trades({ baseUrl }, customer));
    await getList(list(1));
    await getList(list(1, "desc", 10, 70));
    const { data } = await create({ resource: "trades", variables: { ticker: "MDB" }, meta: { customer: 7 } });
    assert.deepEqual(data, { ticker: "MDB", seq: 35, id: 35 });
    assert.equal((await getList(list(2))).total, 35);
    assert.equal((await getList(list(2, "desc", 10, 70))).total, 50);
    assert.deepEqual(asked.slice(3).map(({ url }) => /&asOf=\d+/.exec(url)?.[0]), [undefined, "&asOf=50"]);
  });
});

suite("a list with filters", () => {
  const link = (after: number) => `/v1/customers/7/trades?after=${after}&limit=3&ticker=AMD`;
  const window = (seqs: number[], next?: number) => json({ customerId: 7, order: "asc", items: seqs.map((seq) => ({ seq })), links: next ? { next: link(next) } : {} });
  const params = (page: number) => ({ pagination: { page, perPage: 2 }, sort: { field: "seq", order: "ASC" }, filter: { ticker: "AMD" } });

  test("takes short and empty windows along the links until its page is full, and reads none twice", async (t) => {
    const { baseUrl, asked } = await scripted(t, window([1], 1000), window([], 2000), window([2001, 2002], 2002), window([2003]));
    const { getList } = reactAdmin(() => trades({ baseUrl }, 7));
    const read = async (page: number) => {
      type List = { data: { seq: number }[]; total?: number; pageInfo?: { hasNextPage: boolean } };
      const { data, total, pageInfo }: List = await getList("trades", params(page));
      return [data.map(({ seq }) => seq), pageInfo?.hasNextPage, total];
    };
    // Pages that are read at the same time share the walk.
    assert.deepEqual(await Promise.all([read(1), read(2)]), [[[1, 2001], true, undefined], [[2002, 2003], false, 4]]);
    assert.deepEqual(await read(3), [[], false, 4]);
    assert.deepEqual(asked.map(({ url }) => url), ["/v1/customers/7/trades?ticker=AMD&order=asc&limit=3", link(1000), link(2000), link(2002)]);
  });

  test("continues after a window that failed or was no longer wanted", async (t) => {
    const { baseUrl, asked } = await scripted(t, window([1, 2], 2), problem(500, "internal-error"), window([3]));
    const { getList } = reactAdmin(() => trades({ baseUrl }, 7));
    await assert.rejects(getList("trades", params(1)), { status: 500 });
    await assert.rejects(getList("trades", { ...params(2), signal: AbortSignal.abort() }), { name: "AbortError" });
    assert.deepEqual((await getList("trades", params(2))).data.map(({ seq }) => seq), [3]);
    assert.deepEqual(asked.slice(1).map(({ url }) => url), [link(2), link(2)]);
  });
});
