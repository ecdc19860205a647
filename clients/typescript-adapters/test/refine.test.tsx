import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";

import { history } from "@pagebucket/client";
import { dataProvider } from "@pagebucket/client/adapters/refine";
import { type DataProvider, Refine, useCreate, useCreateMany, useDataProvider, useDelete, useTable, useUpdate } from "@refinedev/core";
import { type ReactNode, useEffect, useState } from "react";

import { RealService, skip } from "../../typescript/test/service.js";
import { found } from "./dom.js";
import { LENGTH, type Shown, type Trades, underWrites } from "./walk.js";

interface Walk {
  done: (shown: Shown[]) => void;
  failed: (error: unknown) => void;
}

function Pages({ done, failed }: Walk) {
  const [shown] = useState<Shown[]>([]);
  const { result, tableQuery, currentPage, setCurrentPage, pageCount } = useTable<{ id: number }>({
    resource: "trades",
    pagination: { pageSize: LENGTH },
    sorters: { initial: [{ field: "id", order: "desc" }] },
  });
  const { isSuccess, isPlaceholderData, error } = tableQuery;
  useEffect(() => {
    if (error) failed(error);
    if (!isSuccess || isPlaceholderData) return;
    shown[currentPage - 1] = { seqs: result.data.map(({ id }) => id), total: result.total };
    if (currentPage < pageCount) setCurrentPage(currentPage + 1);
    else done(shown);
  }, [result.data, error, isPlaceholderData]);
  return null;
}

suite("refine", { skip }, () => {
  let service: RealService;
  let customers = 0;
  before(async () => {
    service = await new RealService().start();
  });
  after(() => service.remove());

  const app = (dataProvider: DataProvider, children: ReactNode) => (
    <Refine dataProvider={dataProvider} options={{ disableTelemetry: true }}>
      {children}
    </Refine>
  );
  const show = (mine: Trades) => found<Shown[]>((done, failed) => app(dataProvider(() => mine), <Pages done={done} failed={failed} />));

  test("walks 1,000 pages while another client appends", async () => {
    const { mine, faults } = await underWrites(service.baseUrl, ++customers);
    assert.deepEqual(await faults(await show(mine)), []);
  });

  /** What refine's hooks hand to a component. */
  function hooks() {
    const ofCustomers = dataProvider((resource, { customerId }) => history(service, "customers", customerId, resource), service.baseUrl);
    const use = () => ({
      provider: useDataProvider()("default"),
      create: useCreate().mutateAsync,
      createMany: useCreateMany().mutateAsync,
      update: useUpdate().mutateAsync,
      remove: useDelete().mutateAsync,
    });
    function Hand({ done }: { done: (hooks: ReturnType<typeof use>) => void }) {
      const hooks = use();
      useEffect(() => done(hooks), []);
      return null;
    }
    return found<ReturnType<typeof use>>((done) => app(ofCustomers, <Hand done={done} />));
  }

  const resource = "trades";

  test("reads records, and appends them once", async () => {
    const meta = { customerId: ++customers };
    const { provider, create, createMany } = await hooks();
    const values = { type: "buy", ticker: "AMD", qty: 448 };
    assert.deepEqual(await create({ resource, values, meta }), { data: { ...values, seq: 1, id: 1 } });
    for (const _ of [1, 2]) assert.equal((await create({ resource, values, meta: { ...meta, key: "mine" } })).data.id, 2);
    const many = { resource, values: [{ ...values, qty: 1 }, { ...values, qty: 2 }], meta };
    assert.deepEqual((await createMany(many)).data.map(({ id, ["qty"]: qty }) => [id, qty]), [[3, 1], [4, 2]]);

    const { data: all, total } = await provider.getList({ resource, meta });
    assert.deepEqual([all.map(({ id }) => id), total], [[1, 2, 3, 4], 4]);
    const last = { pagination: { currentPage: 2, pageSize: 3 }, sorters: [{ field: "seq", order: "desc" as const }] };
    assert.deepEqual(await provider.getList({ resource, meta, ...last }), { data: [all[0]], total: 4 });
    // An item alone also has the number of its page.
    assert.deepEqual(await provider.getOne({ resource, id: "3", meta }), { data: { ...all[2], page: 1 } });
    assert.deepEqual((await provider.getMany!({ resource, ids: [3, 1], meta })).data.map(({ id }) => id), [3, 1]);
    assert.equal(provider.getApiUrl(), service.baseUrl);
  });

  test("refuses what a history cannot do", async () => {
    const meta = { customerId: ++customers };
    const { provider, create, update, remove } = await hooks();
    const list = (params: object) => provider.getList({ resource, meta, ...params });
    await assert.rejects(list({ sorters: [{ field: "price", order: "asc" }] }), { message: "rows by offset have no sorting by anything but seq: price" });
    await assert.rejects(list({ filters: [{ field: "ticker", operator: "eq", value: "MDB" }] }), { message: "rows by offset have no filter by: ticker" });
    await assert.rejects(list({ pagination: { mode: "off" } }), { message: "rows by offset have no pagination of mode: off" });
    await assert.rejects(list({ pagination: { pageSize: 101 } }), /limit must be a whole number from 1 to 100/);
    await assert.rejects(provider.getOne({ resource, id: 1, meta }), { status: 404 });
    // Forms show these faults at their fields.
    const invalid = { type: "buy", ticker: "MDB", qty: 1.5 };
    await assert.rejects(create({ resource, values: invalid, meta }), ({ statusCode, errors }) => statusCode === 422 && /whole number/.test(errors.qty));
    for (const change of [update({ resource, id: 1, values: {}, meta }), remove({ resource, id: 1, meta })]) {
      await assert.rejects(change, { message: "a history is append-only: its items are never changed or deleted" });
    }
  });
});
