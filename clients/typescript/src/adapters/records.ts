// What react-admin and refine share: one provider for all lists of an application, and records that have an `id`.

import { append, type AppendOptions } from "../append.js";
import { ProblemError } from "../errors.js";
import type { History } from "../history.js";
import { historyKey } from "../query.js";
import { item, type ReadOptions } from "../read.js";
import type { Stored } from "../types.js";
import { matching, type MatchingRows, type Walk } from "./matching.js";
import { type Range, type Rows, snapshot, type Snapshot } from "./snapshot.js";

/** The history of a resource. `meta` is what the page's component gives the framework for its provider, or `{}`. */
export type HistoryOf = (resource: string, meta: any) => AnyHistory;
export type AnyHistory = History<any, any>;

/** An item. Its `id` is its `seq`, even if it has a property of that name. */
export type Identified = Stored & { id: number; [property: string]: any };

export interface Lists {
  /** The first page shows the newest items; the other pages of its length and order show what there was then. */
  read(history: AnyHistory, range: Range, options?: ReadOptions): Promise<Rows<Identified>>;
  /** The same of the rows with these values. */
  readMatching(history: AnyHistory, values: object, range: Range, options?: ReadOptions): Promise<MatchingRows<Identified>>;
  one(history: AnyHistory, id: string | number, options?: ReadOptions): Promise<Identified>;
  /** Appends one item, or an array. All lists of the history show them at the next read. */
  create(history: AnyHistory, items: object | object[], options?: AppendOptions): Promise<Identified[]>;
}

export function lists(): Lists {
  const snapshots = new Map<string, Snapshot<Stored, unknown, unknown>>();
  const walks = new Map<string, Walk<Stored>>();

  /** What the pages of a list share. Its first page begins it again. */
  function shared<List extends { refresh(): void }>(open: Map<string, List>, key: string[], { offset, limit, order }: Range, begin: () => List) {
    const name = [...key, order, limit].join(" ");
    const list = open.get(name) ?? begin();
    open.set(name, list);
    if (offset === 0) list.refresh();
    return list;
  }

  return {
    async read(history, range, options) {
      const { rows, total } = await shared(snapshots, historyKey(history), range, () => snapshot(history)).read(range, options);
      return { rows: rows.map(identified), total };
    },
    async readMatching(history, values, range, options) {
      const key = [...historyKey(history), JSON.stringify(values)];
      const { rows, ...counts } = await shared(walks, key, range, () => matching(history, values)).read(range, options);
      return { rows: rows.map(identified), ...counts };
    },
    async one(history, id, options) {
      return identified(await item(history, Number(id), options));
    },
    async create(history, items, options) {
      const { ranges } = await append(history, items, options).catch(forForms);
      const [own] = historyKey(history);
      for (const [key, list] of [...snapshots, ...walks]) if (key.startsWith(own + " ")) list.refresh();
      const created = [items].flat();
      const seqs = ranges.flatMap(({ firstSeq, lastSeq }) => created.slice(0, lastSeq - firstSeq + 1).map((_, index) => firstSeq + index));
      return seqs.map((seq, index) => identified({ ...created[index], seq }));
    },
  };
}

function identified(item: Stored): Identified {
  return { ...item, id: item.seq };
}

/** Rejects with the faults by the names of the form's fields, where both frameworks look for them. */
async function forForms(error: unknown): Promise<never> {
  if (!(error instanceof ProblemError)) throw error;
  const errors = Object.fromEntries(error.errors.map(({ pointer = "/", detail }) => [pointer.slice(1).replaceAll("/", "."), detail]));
  throw Object.assign(new Error(error.message, { cause: error }), { statusCode: error.status, errors, body: { errors } });
}
