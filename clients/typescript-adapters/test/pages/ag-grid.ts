import { serverSideDatasource } from "@pagebucket/client/adapters/ag-grid";
import { ColumnApiModule, createGrid, type IServerSideDatasource, ModuleRegistry, PaginationModule, RowApiModule, TextFilterModule } from "ag-grid-community";
import { ServerSideRowModelApiModule, ServerSideRowModelModule } from "ag-grid-enterprise";

import { LENGTH } from "../walk.js";
import { expose, type Grid } from "./grid.js";

ModuleRegistry.registerModules([ColumnApiModule, PaginationModule, RowApiModule, ServerSideRowModelApiModule, ServerSideRowModelModule, TextFilterModule]);

expose(async (mine, failed) => {
  const source = serverSideDatasource(mine, { onError: (error) => failed(error as Error) });
  const api = createGrid<{ seq: number; price: string }>(document.body.appendChild(document.createElement("div")), {
    rowModelType: "serverSide",
    serverSideDatasource: source satisfies IServerSideDatasource,
    cacheBlockSize: LENGTH,
    pagination: true,
    paginationPageSize: LENGTH,
    paginationPageSizeSelector: false,
    domLayout: "autoHeight",
    columnDefs: [{ field: "seq", sort: "desc" }, { field: "price", filter: "agTextColumnFilter" }],
    getRowId: ({ data }) => String(data.seq),
    onModelUpdated: () => grid.changed(),
  });
  const grid: Grid = {
    shown() {
      const page = api.paginationGetCurrentPage();
      const total = api.paginationGetRowCount();
      const length = Math.min(LENGTH, total - page * LENGTH);
      const seqs = Array.from({ length }, (_, row) => api.getDisplayedRowAtIndex(page * LENGTH + row)?.data?.seq ?? 0);
      return seqs.every(Boolean) ? { page, seqs, total } : undefined;
    },
    changed() {},
    go: (page) => api.paginationGoToPage(page),
    sort: (colId, sort) => api.applyColumnState({ state: [{ colId, sort }], defaultState: { sort: null } }),
    filter: (field, filter) => api.setFilterModel({ [field]: { filterType: "text", type: "contains", filter } }),
    create: source.create,
    refresh() {
      source.refresh();
      api.refreshServerSide({ purge: true });
    },
  };
  return grid;
});
