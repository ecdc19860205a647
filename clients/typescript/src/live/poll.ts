import type { History } from "../history.js";
import { list, newest } from "../read.js";
import type { Stored } from "../types.js";
import { type Connection, Reconnect } from "./connection.js";

/** Seconds that the service waits for items, at most. */
const WAIT = 20;

/** The items of windows, each of which the service answers when it has something to show. It ends with an error, or when a stream is to be tried again. */
export async function* polled<Item extends Stored, NewItem, Owner>(
  history: History<Item, NewItem, Owner>,
  position: number | undefined,
  { attempt, timeout, until, retry, onOpen }: Connection,
): AsyncGenerator<{ items?: Item[]; totalItems?: number }, void> {
  const { signal } = attempt;
  let after: number;
  if (position === undefined) {
    ({ totalItems: after = 0 } = await attempt.within(timeout, () => newest(history, 1, { signal })));
    onOpen();
    yield { totalItems: after };
  } else after = position;
  while (Date.now() < until) {
    const begun = performance.now();
    const window = { after, limit: 100, wait: WAIT };
    const { items } = await attempt.within(timeout + WAIT * 1000, () => list(history, window, { signal }));
    onOpen();
    if (items.length > 0) yield { items };
    // A service that stops answers all polls at once, and so do ends of tokens.
    else if (performance.now() - begun < WAIT * 500) throw new Reconnect(retry * (0.5 + Math.random()), true);
    after = items.at(-1)?.seq ?? after;
  }
}
