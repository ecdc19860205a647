import type { History } from "../history.js";
import type { Stored } from "../types.js";
import { orderOf, refuse, snapshot } from "./snapshot.js";

interface Params<Item> {
  startRow: number;
  endRow: number;
  sortModel: { colId: string; sort: string }[];
  filterModel: object | null;
  successCallback(rows: Item[], lastRow?: number): void;
  failCallback(): void;
}

/**
 * A datasource for AG Grid's infinite row model, which is part of the free AG Grid Community. All its blocks show the history as it
 * was at the first one, also after sorting. After `refresh` or `create`, call the grid's `purgeInfiniteCache()`: it then shows the
 * newest items.
 */
export function infiniteDatasource<Item extends Stored, NewItem, Owner>(
  history: History<Item, NewItem, Owner>,
  { onError = console.error }: { onError?: (error: unknown) => void } = {},
) {
  const { read, refresh, create } = snapshot(history);
  async function rows({ startRow, endRow, sortModel, filterModel }: Params<Item>) {
    refuse("filter by", Object.keys(filterModel ?? {}));
    return read({ offset: startRow, limit: endRow - startRow, order: orderOf(sortModel.map(({ colId, sort }) => [colId, sort])) });
  }
  return {
    refresh,
    create,
    destroy: refresh,
    getRows(params: Params<Item>): void {
      rows(params).then(
        ({ rows, total }) => params.successCallback(rows, total),
        (error) => (params.failCallback(), onError(error)), // the grid does not show why
      );
    },
  };
}
