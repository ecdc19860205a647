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

  test("refuses what a history cannot do", async (t) => {
    t.mock.method(console, "error", () => {}); // react-admin prints each error
    const meta = { customerId: ++customers };
    const { create, getList, getOne, update, updateMany, delete: remove, deleteMany } = await provider();
    const pagination = { page: 1, perPage: 101 };
    await assert.rejects(getList("trades", { meta, sort: { field: "price", order: "ASC" } }), { message: "rows by offset have no sorting by anything but seq: price" });
    await assert.rejects(getList("trades", { meta, filter: { ticker: "MDB", q: "x" } }), { message: "rows by offset have no filter by: ticker, q" });
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
