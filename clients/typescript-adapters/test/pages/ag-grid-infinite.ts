import { infiniteDatasource } from "@pagebucket/client/adapters/ag-grid-infinite";
import { ColumnApiModule, createGrid, type IDatasource, InfiniteRowModelModule, ModuleRegistry, PaginationModule, RowApiModule, TextFilterModule } from "ag-grid-community";

import { gridOf, OPTIONS, type Row } from "./ag-grid-shown.js";
import { expose, type Grid } from "./grid.js";

ModuleRegistry.registerModules([ColumnApiModule, InfiniteRowModelModule, PaginationModule, RowApiModule, TextFilterModule]);

expose(async (mine, failed) => {
  const source = infiniteDatasource(mine, { onError: (error) => failed(error as Error) });
  const api = createGrid<Row>(document.body.appendChild(document.createElement("div")), {
    ...OPTIONS,
    rowModelType: "infinite",
    datasource: source satisfies IDatasource,
    onModelUpdated: () => grid.changed(),
  });
  const grid: Grid = gridOf(api, {
    create: source.create,
    refresh() {
      source.refresh();
      api.purgeInfiniteCache();
    },
  });
  return grid;
});
