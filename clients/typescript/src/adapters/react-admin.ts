import { type HistoryOf, lists } from "./records.js";
import { appendOnly, orderOf, refuse } from "./snapshot.js";

interface Params {
  pagination?: { page: number; perPage: number } | undefined;
  sort?: { field: string; order: string } | undefined;
  filter?: object;
  meta?: any;
  signal?: AbortSignal;
}

/**
 * A data provider for react-admin. The first page of a list shows the newest items, its other pages what there was then. The `id`
 * of a record is its `seq`. `create` sends `meta.key` as its `Idempotency-Key`, or a new one.
 */
export function dataProvider(historyOf: HistoryOf) {
  const { read, one, create } = lists();
  async function getList(resource: string, { pagination, sort, filter = {}, meta = {}, signal }: Params) {
    const { page, perPage } = { page: 1, perPage: 10, ...pagination };
    refuse("filter by", Object.keys(filter));
    const order = orderOf(sort ? [[sort.field === "id" ? "seq" : sort.field, sort.order]] : []);
    const range = { offset: (page - 1) * perPage, limit: perPage, order };
    const { rows, total } = await read(historyOf(resource, meta), range, { signal });
    return { data: rows as any[], total };
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
