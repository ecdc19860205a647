import type { History } from "../history.js";
import type { Stored } from "../types.js";
import { appendOnly, orderOf, refuse, snapshot } from "./snapshot.js";

interface Params {
  start: number | string;
  end: number;
  sortModel: readonly { field: string; sort?: string | null | undefined }[];
  filterModel: { items: { field: string }[]; quickFilterValues?: unknown[] };
  groupFields?: string[];
}

/**
 * A data source for the Data Grid of MUI X, whose rows have the id `seq`. All pages show the history as it was at the first one that
 * was read, also after sorting. After `refresh` or `create`, clear the grid's cache and fetch its rows: it then shows the newest items.
 */
export function dataSource<Item extends Stored, NewItem, Owner>(history: History<Item, NewItem, Owner>) {
  const { read, refresh, create } = snapshot(history);
  return {
    refresh,
    create,
    updateRow: appendOnly,
    async getRows({ start, end, sortModel, filterModel: { items, quickFilterValues = [] }, groupFields = [] }: Params) {
      refuse("filter by", [...items.map(({ field }) => field), ...quickFilterValues.map(String)]);
      refuse("groups of rows", groupFields);
      const order = orderOf(sortModel.map(({ field, sort }) => [field, sort]));
      const { rows, total } = await read({ offset: Number(start), limit: end - Number(start) + 1, order });
      return { rows, rowCount: total };
    },
  };
}
