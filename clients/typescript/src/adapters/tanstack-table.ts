import { newKey } from "../append.js";
import type { History } from "../history.js";
import { historyKey } from "../query.js";
import type { Stored } from "../types.js";
import { orderOf, refuse, snapshot } from "./snapshot.js";

/** The state of a table. */
interface State {
  pagination: { pageIndex: number; pageSize: number };
  sorting?: readonly { id: string; desc: boolean }[];
  columnFilters?: readonly { id: string }[];
  globalFilter?: unknown;
}

/**
 * The rows of a TanStack Table whose pagination, sorting and filters are manual, as queries of TanStack Query. All pages show the
 * history as it was at the first one that was read, also after sorting. After `refresh` or `create`, invalidate the history's
 * queries (`historyKey`): the table then shows the newest items.
 */
export function tableRows<Item extends Stored, NewItem, Owner>(history: History<Item, NewItem, Owner>) {
  const { read, refresh, create } = snapshot(history);
  const table = newKey(); // another table of the history may show another moment
  return {
    refresh,
    create,
    query(state: State) {
      const { pagination: { pageIndex, pageSize }, sorting = [], columnFilters = [], globalFilter } = state;
      return {
        queryKey: [...historyKey(history), "table", table, { pageIndex, pageSize, sorting, columnFilters, globalFilter }] as const,
        queryFn: async ({ signal }: { signal: AbortSignal }): Promise<{ rows: Item[]; rowCount: number }> => {
          refuse("filter by", [...columnFilters.map(({ id }) => id), ...(globalFilter ? [String(globalFilter)] : [])]);
          const order = orderOf(sorting.map(({ id, desc }) => [id, desc ? "desc" : "asc"]));
          const { rows, total } = await read({ offset: pageIndex * pageSize, limit: pageSize, order }, { signal });
          return { rows, rowCount: total };
        },
      };
    },
  };
}
