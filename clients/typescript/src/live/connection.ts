// How a live history is read on when its connection is lost, by streams or by polls.

import { HttpError } from "../errors.js";
import { Attempt, pause, sleep } from "../send.js";

/** Milliseconds before a lost connection is made again, at first, unless the stream says otherwise. */
const RETRY = 2000;
/** For how many milliseconds a history is polled whose stream does not come through, before it is tried again. */
const POLLING = 300_000;

/** How items come: by a stream, or by polls, because no stream comes through; or not at the moment. */
export type LiveState = "stream" | "polling" | "waiting";

export interface LiveOptions {
  /** Milliseconds without a byte before the connection counts as lost. A stream has one every 15 s. Default: 35,000. */
  timeout?: number | undefined;
  /** Called when the state changes. */
  onState?: ((state: LiveState) => void) | undefined;
  signal?: AbortSignal | undefined;
}

/** One connection. */
export interface Connection {
  attempt: Attempt;
  /** Milliseconds without a byte before it counts as lost. */
  timeout: number;
  /** Until when it is polled, by the clock of this machine; 0 if it is streamed. */
  until: number;
  /** Milliseconds before another connection is made, as the service says. */
  retry: number;
  /** The service has answered. */
  onOpen(): void;
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

/**
 * What `connect` reads, again and again, for as long as a repeat can help. `polls` says whether it can poll where no stream comes
 * through.
 */
export async function* reconnecting<T>(
  { timeout = 35_000, onState, signal }: LiveOptions,
  polls: boolean,
  connect: (connection: Connection) => AsyncGenerator<T, void>,
): AsyncGenerator<T, void> {
  let state: LiveState | undefined;
  const enter = (next: LiveState) => next === state || onState?.((state = next));
  let inVain = 0;
  let retry = RETRY;
  let pollUntil = 0;
  for (;;) {
    const polling = Date.now() < pollUntil;
    const attempt = new Attempt(signal);
    const connection: Connection = {
      attempt,
      timeout,
      until: polling ? pollUntil : 0,
      retry,
      onOpen() {
        inVain = 0;
        enter(polling ? "polling" : "stream");
      },
    };
    const forget = onOnline(() => attempt.lose(new Reconnect(0)));
    let wait: number | undefined;
    try {
      for await (const arrived of connect(connection)) {
        signal?.throwIfAborted();
        yield arrived;
      }
    } catch (error) {
      signal?.throwIfAborted();
      retry = connection.retry;
      if (error instanceof Reconnect && (polls || !error.poll)) {
        wait = error.wait ?? retry;
        if (!error.poll) pollUntil = 0;
        else if (!polling) pollUntil = Date.now() + POLLING;
      } else {
        wait = pause(error instanceof Reconnect ? new TypeError(error.message) : error, inVain++, retry);
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

/** Calls `act` when the machine is online again, in browsers. Returns what ends that. */
function onOnline(act: () => void): () => void {
  // Node.js has no such events.
  globalThis.addEventListener?.("online", act);
  return () => globalThis.removeEventListener?.("online", act);
}

/** Waits, at most until the machine is online again. Rejects with the signal's reason. */
async function rest(time: number, signal: AbortSignal | undefined): Promise<void> {
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
