import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";

import { append, historyKey, trades } from "@pagebucket/client";
import { tableRows } from "@pagebucket/client/adapters/tanstack-table";
import { QueryClient } from "@tanstack/react-query";
import { columnFilteringFeature, constructTable, rowPaginationFeature, rowSortingFeature, tableFeatures } from "@tanstack/table-core";
import { storeReactivityBindings } from "@tanstack/table-core/store-reactivity-bindings";

import { RealService, skip } from "../../typescript/test/service.js";
import { LENGTH, manyTrades, type Shown, type Trades, underWrites } from "./walk.js";

const features = tableFeatures({ coreReactivityFeature: storeReactivityBindings(), rowPaginationFeature, rowSortingFeature, columnFilteringFeature });

suite("TanStack Table", { skip }, () => {
  let service: RealService;
  let customers = 0;
  before(async () => {
    service = await new RealService().start();
  });
  after(() => service.remove());

  /** A table of these trades, newest first. */
  function tableOf(mine: Trades) {
    const rows = tableRows(mine);
    const client = new QueryClient({ defaultOptions: { queries: { retry: false } } });
    const options = { manualPagination: true, manualSorting: true, manualFiltering: true, getRowId: ({ seq }: { seq: number }) => String(seq) };
    const initialState = { pagination: { pageIndex: 0, pageSize: LENGTH }, sorting: [{ id: "seq", desc: true }] };
    const table = constructTable({ features, columns: [{ accessorKey: "seq" }, { accessorKey: "price" }], data: [] as { seq: number }[], initialState, ...options });
    /** Shows what the table's state asks for. */
    async function show(): Promise<Shown> {
      const { rows: data, rowCount } = await client.fetchQuery(rows.query(table.store.state));
      table.setOptions((options) => ({ ...options, data, rowCount }));
      return { seqs: table.getRowModel().rows.map((row) => row.getValue<number>("seq")), total: table.getRowCount() };
    }
    return { rows, client, table, show };
  }

  test("walks 1,000 pages while another client appends", async () => {
    const { mine, faults } = await underWrites(service.baseUrl, ++customers);
    const { table, show } = tableOf(mine);
    const shown = [await show()];
    for (; table.getCanNextPage(); shown.push(await show())) table.nextPage();
    assert.deepEqual(await faults(shown), []);
  });

  test("shows one moment until it is refreshed, and appends", async () => {
    const others = trades(service, ++customers);
    await append(others, manyTrades(25));
    const { rows, client, table, show } = tableOf(others);
    await show();
    await append(others, manyTrades(1));
    table.setPageIndex(2);
    assert.deepEqual(await show(), { seqs: [5, 4, 3, 2, 1], total: 25 });
    table.setSorting([]);
    table.setPageIndex(2);
    assert.deepEqual(await show(), { seqs: [21, 22, 23, 24, 25], total: 25 });
    rows.refresh();
    await client.invalidateQueries({ queryKey: historyKey(others) });
    assert.deepEqual(await show(), { seqs: [21, 22, 23, 24, 25, 26], total: 26 });
    await rows.create({ type: "buy", ticker: "AMD", qty: 448 });
    assert.deepEqual(await show(), { seqs: [21, 22, 23, 24, 25, 26, 27], total: 27 });
  });

  test("refuses what a history cannot do", async () => {
    const { table, show } = tableOf(trades(service, ++customers));
    table.setSorting([{ id: "price", desc: false }]);
    await assert.rejects(show(), { message: "rows by offset have no sorting by anything but seq: price" });
    table.setSorting([]);
    table.setColumnFilters([{ id: "price", value: "15" }]);
    await assert.rejects(show(), { message: "rows by offset have no filter by: price" });
    table.setColumnFilters([]);
    table.setPageSize(101);
    await assert.rejects(show(), /limit must be a whole number from 1 to 100/);
  });
});
