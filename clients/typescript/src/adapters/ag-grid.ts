import type { History } from "../history.js";
import type { Stored } from "../types.js";
import { orderOf, refuse, snapshot } from "./snapshot.js";

interface Request {
  startRow: number | undefined;
  endRow: number | undefined;
  sortModel: { colId: string; sort: string }[];
  filterModel: object | null;
  rowGroupCols: { id: string }[];
  pivotCols: { id: string }[];
}

/**
 * A datasource for AG Grid's server-side row model. All its blocks show the history as it was at the first one, also after sorting.
 * After `refresh` or `create`, call the grid's `refreshServerSide({ purge: true })`: it then shows the newest items.
 */
export function serverSideDatasource<Item extends Stored, NewItem, Owner>(
  history: History<Item, NewItem, Owner>,
  { onError = console.error }: { onError?: (error: unknown) => void } = {},
) {
  const { read, refresh, create } = snapshot(history);
  async function rows({ startRow = 0, endRow = Infinity, sortModel, filterModel, rowGroupCols, pivotCols }: Request) {
    refuse("filter by", Object.keys(filterModel ?? {}));
    refuse("groups or pivots", [...rowGroupCols, ...pivotCols].map(({ id }) => id));
    return read({ offset: startRow, limit: endRow - startRow, order: orderOf(sortModel.map(({ colId, sort }) => [colId, sort])) });
  }
  return {
    refresh,
    create,
    destroy: refresh,
    getRows(params: { request: Request; success(result: { rowData: Item[]; rowCount: number }): void; fail(): void }): void {
      rows(params.request).then(
        ({ rows, total }) => params.success({ rowData: rows, rowCount: total }),
        (error) => (params.fail(), onError(error)), // the grid does not show why
      );
    },
  };
}
