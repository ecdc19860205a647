// Plain objects for TanStack Query, version 5. Nothing of it is imported: `useQuery(listQuery(…))` checks the types.

import type { History } from "./history.js";
import { list, page } from "./read.js";
import type { ListParameters, Listing, Page, Stored } from "./types.js";

interface Context {
  signal: AbortSignal;
}

/** The beginning of the keys of all queries of a history: `invalidateQueries({ queryKey: historyKey(history) })`. */
export function historyKey({ service, path }: Pick<History<never, never>, "service" | "path">): [string] {
  return [service.baseUrl + path];
}

/** For `useQuery`: one page, window or span of time. */
export function listQuery<Item extends Stored, NewItem, Owner, Filter extends string>(
  history: History<Item, NewItem, Owner, Filter>,
  parameters: ListParameters<Item, Filter> = {},
) {
  return {
    queryKey: [...historyKey(history), "list", parameters] as const,
    queryFn: ({ signal }: Context): Promise<Listing<Item, Owner>> => list(history, parameters, { signal }),
  };
}

/** For `useQuery`: a page as it is stored. A full page is never asked for again. */
export function pageQuery<Item extends Stored, NewItem, Owner>(history: History<Item, NewItem, Owner>, number: number) {
  return {
    queryKey: [...historyKey(history), "page", number] as const,
    queryFn: ({ signal }: Context): Promise<Page<Item, Owner>> => page(history, number, { signal }),
    staleTime: ({ state }: { state: { data?: { full: boolean } | undefined } }) => (state.data?.full ? Infinity : 0),
  };
}

/** For `useInfiniteQuery`: pages or windows, along their links. */
export function infiniteQuery<Item extends Stored, NewItem, Owner, Filter extends string>(
  history: History<Item, NewItem, Owner, Filter>,
  parameters: ListParameters<Item, Filter> = {},
) {
  type Shown = Pick<Listing<Item, Owner>, "links">;
  return {
    queryKey: [...historyKey(history), "infinite", parameters] as const,
    queryFn: ({ pageParam, signal }: Context & { pageParam: string }): Promise<Listing<Item, Owner>> =>
      list(history, pageParam || parameters, { signal }),
    /** A link, or nothing for the first listing. */
    initialPageParam: "",
    getNextPageParam: (shown: Shown) => shown.links.next,
    getPreviousPageParam: (shown: Shown) => shown.links.prev,
  };
}
