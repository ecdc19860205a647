import { type HistoryOf, lists } from "./records.js";
import { appendOnly, orderOf, refuse } from "./snapshot.js";

type Params<Rest> = { resource: string; meta?: any } & Rest;
interface List {
  pagination?: { currentPage?: number; pageSize?: number; mode?: string };
  sorters?: { field: string; order: string }[];
  filters?: object[];
}

/**
 * A data provider for refine, version 5. The first page of a list shows the newest items, its other pages what there was then. The
 * `id` of a record is its `seq`. `create` and `createMany` send `meta.key` as their `Idempotency-Key`, or a new one.
 */
export function dataProvider(historyOf: HistoryOf, apiUrl = "") {
  const { read, one, create } = lists();
  return {
    getApiUrl: () => apiUrl,
    async getList({ resource, pagination, sorters = [], filters = [], meta = {} }: Params<List>) {
      const { currentPage = 1, pageSize = 10, mode = "server" } = pagination ?? {};
      if (mode !== "server") refuse("pagination of mode", [mode]);
      refuse("filter by", filters.map((filter) => ("field" in filter ? String(filter.field) : "and, or")));
      const order = orderOf(sorters.map(({ field, order }) => [field === "id" ? "seq" : field, order]));
      const range = { offset: (currentPage - 1) * pageSize, limit: pageSize, order };
      const { rows, total } = await read(historyOf(resource, meta), range, { signal: meta.queryContext?.signal });
      return { data: rows as any[], total };
    },
    getOne: async ({ resource, id, meta = {} }: Params<{ id: string | number }>) =>
      ({ data: await one(historyOf(resource, meta), id, { signal: meta.queryContext?.signal }) as any }),
    getMany: async ({ resource, ids, meta = {} }: Params<{ ids: (string | number)[] }>) =>
      ({ data: await Promise.all(ids.map((id) => one(historyOf(resource, meta), id, { signal: meta.queryContext?.signal }))) as any[] }),
    create: async ({ resource, variables, meta = {} }: Params<{ variables: any }>) =>
      ({ data: (await create(historyOf(resource, meta), variables, { key: meta.key }))[0] as any }),
    createMany: async ({ resource, variables, meta = {} }: Params<{ variables: any[] }>) =>
      ({ data: await create(historyOf(resource, meta), variables, { key: meta.key }) as any[] }),
    update: appendOnly, updateMany: appendOnly, deleteOne: appendOnly, deleteMany: appendOnly,
  };
}
