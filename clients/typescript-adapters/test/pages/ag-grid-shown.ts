// What the tests do with AG Grid, whatever its row model.

import type { GridApi } from "ag-grid-community";

import { LENGTH } from "../walk.js";
import type { Grid } from "./grid.js";

export type Row = { seq: number; price: string };

/** What both row models are given. */
export const OPTIONS = {
  cacheBlockSize: LENGTH,
  pagination: true,
  paginationPageSize: LENGTH,
  paginationPageSizeSelector: false as const,
  domLayout: "autoHeight" as const,
  columnDefs: [{ field: "seq" as const, sort: "desc" as const }, { field: "price" as const, filter: "agTextColumnFilter" }],
  getRowId: ({ data }: { data: Row }) => String(data.seq),
};

export function gridOf(api: GridApi<Row>, { create, refresh }: Pick<Grid, "create" | "refresh">): Grid {
  return {
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
    create,
    refresh,
  };
}
