import { serverSideDatasource } from "@pagebucket/client/adapters/ag-grid";
import { ColumnApiModule, createGrid, type IServerSideDatasource, ModuleRegistry, PaginationModule, RowApiModule, TextFilterModule } from "ag-grid-community";
import { ServerSideRowModelApiModule, ServerSideRowModelModule } from "ag-grid-enterprise";

import { gridOf, OPTIONS, type Row } from "./ag-grid-shown.js";
import { expose, type Grid } from "./grid.js";

ModuleRegistry.registerModules([ColumnApiModule, PaginationModule, RowApiModule, ServerSideRowModelApiModule, ServerSideRowModelModule, TextFilterModule]);

expose(async (mine, failed) => {
  const source = serverSideDatasource(mine, { onError: (error) => failed(error as Error) });
  const api = createGrid<Row>(document.body.appendChild(document.createElement("div")), {
    ...OPTIONS,
    rowModelType: "serverSide",
    serverSideDatasource: source satisfies IServerSideDatasource,
    onModelUpdated: () => grid.changed(),
  });
  const grid: Grid = gridOf(api, {
    create: source.create,
    refresh() {
      source.refresh();
      api.refreshServerSide({ purge: true });
    },
  });
  return grid;
});
