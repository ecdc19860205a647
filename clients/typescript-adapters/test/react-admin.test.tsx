import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";

import { append, history } from "@pagebucket/client";
import { dataProvider } from "@pagebucket/client/adapters/react-admin";
import { CoreAdminContext, type DataProvider, TestMemoryRouter, useDataProvider, useGetList, useInfiniteGetList } from "ra-core";
import { type ReactNode, useEffect, useState } from "react";

import { RealService, skip } from "../../typescript/test/service.js";
import { found } from "./dom.js";
import { LENGTH, manyTrades, type Shown, type Trades, underWrites } from "./walk.js";

const SORT = { field: "id", order: "DESC" } as const;

interface Walk {
  done: (shown: Shown[]) => void;
  failed: (error: unknown) => void;
}

function seqs(records: { id: number }[]): number[] {
  return records.map(({ id }) => id);
}

/** Page after page, as a list with a pagination shows them. */
function Pages({ done, failed }: Walk) {
  const [shown] = useState<Shown[]>([]);
  const [page, setPage] = useState(1);
  const { data, total, error, isPlaceholderData } = useGetList("trades", { pagination: { page, perPage: LENGTH }, sort: SORT });
  useEffect(() => {
    if (error) failed(error);
    if (!data || isPlaceholderData) return;
    shown[page - 1] = { seqs: seqs(data), total };
    if (page * LENGTH < total!) setPage(page + 1);
    else done(shown);
  }, [data, error, isPlaceholderData]);
  return null;
}

/** Page after page, as an infinite list shows them. */
function Infinite({ done, failed }: Walk) {
  const { data, error, hasNextPage, fetchNextPage } = useInfiniteGetList("trades", { pagination: { page: 1, perPage: LENGTH }, sort: SORT });
  useEffect(() => {
    if (error) failed(error);
    if (!data) return;
    if (hasNextPage) void fetchNextPage();
    else done(data.pages.map(({ data, total }) => ({ seqs: seqs(data), total })));
  }, [data, error]);
  return null;
}

suite("react-admin", { skip }, () => {
  let service: RealService;
  let customers = 0;
  before(async () => {
    service = await new RealService().start();
  });
  after(() => service.remove());

  const admin = (dataProvider: DataProvider, children: ReactNode) => (
    <TestMemoryRouter>
      <CoreAdminContext dataProvider={dataProvider}>{children}</CoreAdminContext>
    </TestMemoryRouter>
  );
  const show = (mine: Trades, List: typeof Pages) =>
    found<Shown[]>((done, failed) => admin(dataProvider(() => mine), <List done={done} failed={failed} />));

  for (const List of [Pages, Infinite]) {
    test(`${List.name}: walks 1,000 pages while another client appends`, async () => {
      const { mine, faults } = await underWrites(service.baseUrl, ++customers);
      assert.deepEqual(await faults(await show(mine, List)), []);
    });
  }

  /** The trades of customers, as react-admin hands them to its components. */
  function provider(): Promise<DataProvider> {
    const ofCustomers = dataProvider((resource, { customerId }) => history(service, "customers", customerId, resource));
    function Hand({ done }: { done: (provider: DataProvider) => void }) {
      const provider = useDataProvider();
      useEffect(() => done(provider), []);
      return null;
    }
    return found((done) => admin(ofCustomers, <Hand done={done} />));
  }

  test("reads records, and appends them once", async () => {
    const meta = { customerId: ++customers };
    const { create, getList, getOne, getMany, getManyReference } = await provider();
    const data = { type: "buy", ticker: "AMD", qty: 448 };
    assert.deepEqual(await create("trades", { data, meta }), { data: { ...data, seq: 1, id: 1 } });
    for (const _ of [1, 2]) assert.equal((await create("trades", { data, meta: { ...meta, key: "mine" } })).data.id, 2);
    await append(history(service, "customers", customers, "trades"), manyTrades(1));

    const { data: all, total } = await getList("trades", { meta });
    assert.deepEqual([all.map(({ id, seq, qty }) => [id, seq, qty]), total], [[[1, 1, 448], [2, 2, 448], [3, 3, 1]], 3]);
    const params = { target: "customerId", id: customers, pagination: { page: 2, perPage: 2 }, sort: SORT, filter: {} };
    assert.deepEqual(await getManyReference("trades", params), { data: [all[0]], total: 3 });
    // An item alone also has the number of its page.
    assert.deepEqual(await getOne("trades", { id: "3", meta }), { data: { ...all[2], page: 1 } });
    assert.deepEqual((await getMany("trades", { ids: [3, 1], meta })).data.map(({ id }) => id), [3, 1]);
  });

  test("filters narrow a list, whose total is known at its end, and the sorting by another column is ignored with one warning", async (t) => {
    const warned = t.mock.method(console, "warn", () => {});
    const meta = { customerId: ++customers };
    const mine = history(service, "customers", customers, "trades");
    const amd = { type: "buy", ticker: "AMD", qty: 448 };
    await append(mine, [amd, ...manyTrades(20), amd, amd]); // numbers 1, 22 and 23
    const { getList, getManyReference, create } = await provider();
    const shown = async (page: number, filter: object, field = "seq") => {
      const pagination = { page, perPage: 2 };
      const { data, total, pageInfo } = await getList("trades", { meta, pagination, sort: { field, order: "DESC" }, filter });
      return [seqs(data as { id: number }[]), total, pageInfo];
    };
    const has = (hasNextPage: boolean, hasPreviousPage: boolean) => ({ hasNextPage, hasPreviousPage });
    assert.deepEqual(await shown(2, { ticker: "AMD", type: "" }), [[1], 3, has(false, true)]);
    assert.deepEqual(await shown(1, { ticker: "AMD", type: "" }), [[23, 22], 3, has(true, false)]);
    await append(mine, amd); // number 24 moves no row
    assert.deepEqual((await shown(1, { ticker: "MDB" })).slice(1), [undefined, has(true, false)]);
    assert.deepEqual(await shown(2, { ticker: "AMD", type: "" }), [[1], 3, has(false, true)]);
    await create("trades", { data: amd, meta });
    assert.deepEqual(await shown(2, { ticker: "AMD", type: "" }), [[23, 22], 5, has(true, true)]);
    assert.deepEqual(await shown(1, { ticker: "AMD", type: "sell" }), [[], 0, has(false, false)]);
    assert.deepEqual(await shown(1, { ticker: "", type: null }), [[25, 24], 25, undefined]);
    assert.deepEqual((await shown(1, { from: "2004-01-01T00:00:00Z" }))[0], [25, 24]);
    const params = { target: "customerId", id: customers, pagination: { page: 1, perPage: 10 }, sort: SORT, filter: { ticker: "AMD" } };
    assert.deepEqual(seqs((await getManyReference("trades", params)).data as { id: number }[]), [25, 24, 23, 22, 1]);

    assert.equal(warned.mock.callCount(), 0);
    for (const page of [1, 2]) assert.deepEqual((await shown(page, {}, "price"))[0], page === 1 ? [25, 24] : [23, 22]);
    assert.deepEqual((await shown(1, { ticker: "AMD" }, "price"))[0], [25, 24]);
    assert.deepEqual(warned.mock.calls.map(({ arguments: [text] }) => text), ["a history is sorted by seq only: the sorting by price is ignored"]);
  });

  test("refuses what a history cannot do", async (t) => {
    t.mock.method(console, "error", () => {}); // react-admin prints each error
    const meta = { customerId: ++customers };
    const { create, getList, getOne, update, updateMany, delete: remove, deleteMany } = await provider();
    const pagination = { page: 1, perPage: 101 };
    await assert.rejects(getList("trades", { meta, filter: { ticker: "MDB", q: "x" } }), /q is not a parameter/);
    await assert.rejects(getList("trades", { meta, pagination }), /limit must be a whole number from 1 to 100/);
    for (const id of ["", "x", "pages/1"]) await assert.rejects(getOne("trades", { id, meta }), { status: 400 });
    await assert.rejects(getOne("trades", { id: 1, meta }), { status: 404 });
    // Forms show these faults at their fields.
    const invalid = { type: "buy", ticker: "MDB", qty: 1.5 };
    await assert.rejects(create("trades", { data: invalid, meta }), ({ body: { errors } }) => /whole number/.test(errors.qty));
    const previousData = { id: 1 };
    const changes = [
      update("trades", { id: 1, data: {}, previousData, meta }),
      updateMany("trades", { ids: [1], data: {}, meta }),
      remove("trades", { id: 1, previousData, meta }),
      deleteMany("trades", { ids: [1], meta }),
    ];
    for (const change of changes) await assert.rejects(change, { message: "a history is append-only: its items are never changed or deleted" });
  });
});
