import { HttpError } from "./errors.js";
import type { History } from "./history.js";
import { onOnline, Reconnect, rest, type Connection } from "./live/connection.js";
import { polled } from "./live/poll.js";
import { streamed } from "./live/stream.js";
import { Attempt, pause } from "./send.js";
import type { Stored } from "./types.js";

/** Milliseconds before a lost connection is made again, at first, unless the stream says otherwise. */
const RETRY = 2000;
/** For how many milliseconds a history is polled whose stream does not come through, before it is tried again. */
const POLLING = 300_000;

/** Where a live history begins. */
export interface LiveParameters {
  /** With the item after this `seq`; 0 is the beginning. Default: the end of the history. */
  after?: number | undefined;
}

/** How items come: by a stream, or by polls, because no stream comes through; or not at the moment. */
export type LiveState = "stream" | "polling" | "waiting";

export interface LiveOptions {
  /** Milliseconds without a byte before the connection counts as lost. A stream has one every 15 s. Default: 35,000. */
  timeout?: number | undefined;
  /** Called when the state changes. */
  onState?: ((state: LiveState) => void) | undefined;
  signal?: AbortSignal | undefined;
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
  { timeout = 35_000, onState, signal }: LiveOptions = {},
): AsyncGenerator<LiveBatch<Item>, void> {
  let state: LiveState | undefined;
  const enter = (next: LiveState) => next === state || onState?.((state = next));
  let inVain = 0;
  let retry = RETRY;
  let pollUntil = 0;
  for (let resumed = false; ; resumed = position !== undefined) {
    const polling = Date.now() < pollUntil;
    const attempt = new Attempt(signal);
    const connection: Connection = {
      attempt,
      timeout,
      position,
      resumed,
      until: pollUntil,
      retry,
      onOpen() {
        inVain = 0;
        enter(polling ? "polling" : "stream");
      },
    };
    const forget = onOnline(() => attempt.lose(new Reconnect(0)));
    let wait: number | undefined;
    try {
      for await (const arrived of (polling ? polled : streamed)(history, connection)) {
        signal?.throwIfAborted();
        const items = arrived.items.filter(({ seq }) => seq > (position ?? 0));
        for (const { seq } of items) {
          // After 0 comes the first item that is there.
          if (position && seq !== position + 1) throw new Error(`item ${seq} came after item ${position}`);
          position = seq;
        }
        position ??= arrived.position ?? 0;
        yield { items, position };
      }
    } catch (error) {
      signal?.throwIfAborted();
      retry = connection.retry;
      if (error instanceof Reconnect) {
        wait = error.wait ?? retry;
        if (!error.poll) pollUntil = 0;
        else if (!polling) pollUntil = Date.now() + POLLING;
      } else {
        wait = pause(error, inVain++, retry);
        if (wait === undefined) throw error;
        if (!(error instanceof HttpError)) pollUntil = 0;
      }
    } finally {
      forget();
      attempt.end();
    }
    if (wait) {
      enter("waiting");
      await rest(wait, signal);
    }
  }
}
