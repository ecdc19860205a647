// What a stream and polls of a live history have in common.

import { Attempt, sleep } from "../send.js";

/** One connection to a live history. */
export interface Connection {
  attempt: Attempt;
  /** Milliseconds without a byte before it counts as lost. */
  timeout: number;
  /** The `seq` of the last item so far. */
  position: number | undefined;
  /** Whether it goes on after an earlier connection. */
  resumed: boolean;
  /** Until when it is polled, by the clock of this machine, where it is polled. */
  until: number;
  /** Milliseconds before another connection is made, as the service says. */
  retry: number;
  /** The service has answered. */
  onOpen(): void;
}

/** What comes by it: items, or only where the history ends. */
export interface Arrived<Item> {
  items: Item[];
  position?: number;
}

/** The connection is over, and another one is made after this time, or after that which the service has said. */
export class Reconnect extends Error {
  constructor(
    readonly wait?: number,
    /** Whether by polls, because no stream comes through. */
    readonly poll = false,
  ) {
    super("the connection is over");
  }
}

/** Calls `act` when the machine is online again, in browsers. Returns what ends that. */
export function onOnline(act: () => void): () => void {
  // Node.js has no such events.
  globalThis.addEventListener?.("online", act);
  return () => globalThis.removeEventListener?.("online", act);
}

/** Waits, at most until the machine is online again. Rejects with the signal's reason. */
export async function rest(time: number, signal: AbortSignal | undefined): Promise<void> {
  const attempt = new Attempt(signal);
  const forget = onOnline(() => attempt.end());
  try {
    await sleep(time, attempt.signal);
  } catch {
    signal?.throwIfAborted();
  } finally {
    forget();
    attempt.end();
  }
}
