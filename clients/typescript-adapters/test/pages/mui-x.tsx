import { dataSource } from "@pagebucket/client/adapters/mui-x";
import { DataGrid, type GridApi, type GridDataSource, useGridApiRef } from "@mui/x-data-grid";
import { useEffect } from "react";
import { createRoot } from "react-dom/client";

import { LENGTH } from "../walk.js";
import { expose, type Grid } from "./grid.js";

interface Props {
  source: GridDataSource;
  failed: (error: Error) => void;
  ready: (api: GridApi) => void;
}

function Page({ source, failed, ready }: Props) {
  const api = useGridApiRef();
  useEffect(() => ready(api.current!), []);
  return (
    <DataGrid
      apiRef={api}
      dataSource={source}
      onDataSourceError={failed}
      getRowId={({ seq }) => seq}
      columns={[{ field: "seq" }, { field: "price" }]}
      pagination
      pageSizeOptions={[LENGTH]}
      initialState={{ sorting: { sortModel: [{ field: "seq", sort: "desc" }] }, pagination: { paginationModel: { pageSize: LENGTH } } }}
    />
  );
}

expose(async (mine, failed) => {
  const source = dataSource(mine);
  const root = createRoot(document.body.appendChild(document.createElement("div")));
  const api = await new Promise<GridApi>((ready) => root.render(<Page source={source} failed={failed} ready={ready} />));
  const grid: Grid = {
    shown() {
      const { pagination, rows } = api.state;
      const seqs = api.getAllRowIds() as number[];
      return rows.loading || !seqs.length ? undefined : { page: pagination.paginationModel.page, seqs, total: pagination.rowCount };
    },
    changed() {},
    go: api.setPage,
    sort: (field, order) => api.setSortModel([{ field, sort: order }]),
    filter: (field, value) => api.setFilterModel({ items: [{ field, operator: "contains", value }] }),
    create: source.create,
    refresh() {
      source.refresh();
      api.dataSource.cache.clear();
      void api.dataSource.fetchRows();
    },
    edit: () => Promise.resolve(api.dataSource.editRow({ rowId: 1, updatedRow: {}, previousRow: {} })),
  };
  api.subscribeEvent("rowsSet", () => grid.changed());
  return grid;
});
