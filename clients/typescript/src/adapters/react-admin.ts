import { type HistoryOf, lists } from "./records.js";
import { appendOnly, orderOf, type Range } from "./snapshot.js";

interface Params {
  pagination?: { page: number; perPage: number } | undefined;
  sort?: { field: string; order: string } | undefined;
  filter?: object;
  meta?: any;
  signal?: AbortSignal;
}

/**
 * A data provider for react-admin. The first page of a list shows the newest items, its other pages what there was then. A list with
 * filters has `pageInfo`, and a total only when its end was read. The `id` of a record is its `seq`. `create` sends `meta.key` as its `Idempotency-Key`, or a
 * new one.
 */
export function dataProvider(historyOf: HistoryOf) {
  const { read, readMatching, one, create } = lists();
  const ignored = new Set<string>();

  /** A click on the head of a column asks for its order. That of another column than `seq` is ignored: the newest items come first. */
  function orderBy({ field, order }: { field: string; order: string }): Range["order"] {
    if (field === "id" || field === "seq") return orderOf([["seq", order]]);
    if (!ignored.has(field)) console.warn(`a history is sorted by seq only: the sorting by ${field} is ignored`);
    ignored.add(field);
    return "desc";
  }

  async function getList(resource: string, { pagination, sort, filter = {}, meta = {}, signal }: Params) {
    const { page, perPage } = { page: 1, perPage: 10, ...pagination };
    const range: Range = { offset: (page - 1) * perPage, limit: perPage, order: sort ? orderBy(sort) : "asc" };
    const values = Object.entries(filter).filter(([, value]) => value !== "" && value != null); // inputs that are empty
    if (values.length === 0) {
      const { rows, total } = await read(historyOf(resource, meta), range, { signal });
      return { data: rows as any[], total };
    }
    const { rows, more, total } = await readMatching(historyOf(resource, meta), Object.fromEntries(values), range, { signal });
    const pageInfo = { hasNextPage: more, hasPreviousPage: page > 1 };
    return { data: rows as any[], pageInfo, ...(total !== undefined && { total }) };
  }
  return {
    supportAbortSignal: true,
    getList,
    getManyReference: (resource: string, { target, id, meta, ...params }: Params & { target: string; id: string | number }) =>
      getList(resource, { ...params, meta: { ...meta, [target]: id } }),
    getOne: async (resource: string, { id, meta = {}, signal }: Params & { id: string | number }) =>
      ({ data: await one(historyOf(resource, meta), id, { signal }) as any }),
    getMany: async (resource: string, { ids, meta = {}, signal }: Params & { ids: (string | number)[] }) =>
      ({ data: await Promise.all(ids.map((id) => one(historyOf(resource, meta), id, { signal }))) as any[] }),
    create: async (resource: string, { data, meta = {} }: { data: object; meta?: any }) =>
      ({ data: (await create(historyOf(resource, meta), data, { key: meta.key }))[0] as any }),
    update: appendOnly, updateMany: appendOnly, delete: appendOnly, deleteMany: appendOnly,
  };
}
