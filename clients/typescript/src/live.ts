import { GoneError } from "./errors.js";
import type { History, Service } from "./history.js";
import { type LiveOptions, reconnecting } from "./live/connection.js";
import { polled } from "./live/poll.js";
import { streamed } from "./live/stream.js";
import { query } from "./read.js";
import type { OwnerTotals, Stored } from "./types.js";

export type { LiveOptions, LiveState } from "./live/connection.js";

/** Where a live history begins. */
export interface LiveParameters {
  /** With the item after this `seq`; 0 is the beginning. Default: the end of the history. */
  after?: number | undefined;
}

/** Items that come together, in order of `seq`. */
export interface LiveBatch<Item> {
  items: Item[];
  /** The `seq` of the last item so far: to begin there again, it is `after`. */
  position: number;
}

/**
 * The items after `after`, or from now on, in order of `seq`: those that are stored, then each one that is appended. A lost connection is
 * resumed for as long as it takes: every item comes once. A `break` ends it, and an aborted signal, with its reason. Throws a
 * `GoneError` if the next items are deleted, and the `ProblemError` of a request that the service refuses.
 */
export async function* live<Item extends Stored, NewItem, Owner>(
  history: History<Item, NewItem, Owner>,
  parameters?: LiveParameters,
  options?: LiveOptions,
): AsyncGenerator<Item, void> {
  for await (const { items } of liveBatches(history, parameters, options))
    for (const item of items) {
      options?.signal?.throwIfAborted();
      yield item;
    }
}

/** The same in batches, as items come. Without `after`, the first batch has no items: its `position` is the end of the history. */
export async function* liveBatches<Item extends Stored, NewItem, Owner>(
  history: History<Item, NewItem, Owner>,
  { after: position }: LiveParameters = {},
  options: LiveOptions = {},
): AsyncGenerator<LiveBatch<Item>, void> {
  const { service, path } = history;
  const place = new Place(position);
  const batches = reconnecting(options, true, async function* (connection) {
    if (connection.until) return yield* polled(history, place.position, connection);
    const last = place.arrived ? `${place.position}` : undefined;
    for await (const { content, gone } of streamed(service, `${path}/live${query({ after: place.position })}`, last, connection)) {
      if (gone) throw gone;
      yield content as { items?: Item[]; totalItems?: number };
    }
  });
  for await (const arrived of batches) yield place.pass(arrived);
}

/** One of several histories that are read live. */
export interface WatchedHistory<Item extends Stored> extends LiveParameters {
  history: History<Item, any>;
}

/** Items of one of several histories. */
export interface LiveManyBatch<Item extends Stored> extends LiveBatch<Item> {
  history: History<Item, any>;
  /** The next items are deleted, and this is the last batch of the history. */
  gone?: GoneError;
}

/**
 * Up to 32 histories of one service by one stream, each as `liveBatches` has it. A history whose next items are deleted has a last batch with
 * `gone`, and the others go on. It ends when all are gone.
 */
export async function* liveMany<Item extends Stored>(
  watched: readonly WatchedHistory<Item>[],
  options: LiveOptions = {},
): AsyncGenerator<LiveManyBatch<Item>, void> {
  const shown = watched.map(({ history, after }) => ({ history, name: history.path.slice(4), place: new Place(after), gone: false }));
  const watch = shown.map(({ name, place: { position } }) => (position === undefined ? name : `${name}:${position}`));
  let last: string | undefined;
  const events = reconnecting(options, false, (connection) => streamed(watched[0]!.history.service, `/v1/live${query({ watch })}`, last, connection));
  for await (const { id, content, gone } of events) {
    last = id ?? last;
    // A UUID may be written in two ways.
    const is = (name: string) => shown.find((one) => one.name === name);
    const one = is(content.watch) ?? shown.find(({ name }) => name.toLowerCase() === content.watch.toLowerCase())!;
    // A stream that is resumed tells it again.
    if (one.gone) continue;
    yield { history: one.history, ...one.place.pass(gone ? {} : content), ...(gone && { gone }) };
    one.gone = !!gone;
    if (shown.every(({ gone }) => gone)) return;
  }
}

/** Owners that have new items, each with its latest totals. */
export interface OwnersBatch<Owner> {
  owners: OwnerTotals<Owner>[];
  /** Where to begin again. Absent if more owners follow at once. */
  position?: string | undefined;
}

/**
 * Which owners have new items `items`, from now on or after a `position`. The first batch has no owners: list them after it, and nothing is
 * missed. Throws a `GoneError` if the position is too old: begin without it, and list the owners again.
 */
export async function* liveOwners<Owner>(
  service: Service,
  items: string,
  { position }: { position?: string | undefined } = {},
  options: LiveOptions = {},
): AsyncGenerator<OwnersBatch<Owner>, void> {
  const path = `/v1/${encodeURIComponent(items)}/live`;
  for await (const { id, content } of reconnecting(options, false, (connection) => streamed(service, path, position, connection))) {
    position = id ?? position;
    const owners = (content.items ?? []).map(({ [items]: totals, ...owner }: any) => ({ owner, ...totals }));
    yield { owners, position: id };
  }
}

/** Where a history is read. */
class Place {
  /** Whether the service has said something of it. Until then 0 is the first item that is there; then it is before item 1. */
  arrived = false;

  constructor(public position: number | undefined) {}

  /** The items that come next. */
  pass<Item extends Stored>({ items: arrived = [], totalItems }: { items?: Item[]; totalItems?: number }): LiveBatch<Item> {
    const items = arrived.filter(({ seq }) => seq > (this.position ?? 0));
    for (const { seq } of items) {
      if ((this.arrived || this.position) && seq !== this.position! + 1) throw new Error(`item ${seq} came after item ${this.position}`);
      this.position = seq;
      this.arrived = true;
    }
    this.arrived ||= totalItems !== undefined;
    return { items, position: (this.position ??= totalItems ?? 0) };
  }
}
