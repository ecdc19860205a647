import { failure, HttpError } from "./errors.js";
import type { History } from "./history.js";
import { Attempt, pause, send, sleep } from "./send.js";
import type { Appended, Stored } from "./types.js";

export interface AppendOptions {
  /** The request's `Idempotency-Key`, new for each new request. Default: `newKey()`. */
  key?: string | undefined;
  /** The `totalItems` that were seen: the first item is stored only if it gets the next `seq`, otherwise the service refuses all with 412. */
  expectedSeq?: number | undefined;
  /** Milliseconds from now until the last attempt must be answered. Default: 30,000. */
  deadline?: number | undefined;
  /** Milliseconds that one attempt may take before the next one. Default: 10,000. */
  timeout?: number | undefined;
  /** Ends the attempts. The append may be stored nevertheless. */
  signal?: AbortSignal | undefined;
}

/** An append was not acknowledged in time. It may be stored. The same items may be sent again with the same `key`. */
export class NotAcknowledgedError extends Error {
  override readonly name = "NotAcknowledgedError";

  constructor(
    /** The append's `Idempotency-Key`. */
    readonly key: string,
    /** How often the append was sent. */
    readonly attempts: number,
    /** What the last attempt failed with. */
    cause: unknown,
  ) {
    super(`not acknowledged in ${attempts} attempts, the last: ${cause}`, { cause });
  }
}

/** A new key for a new request. Keep it where it survives a reload of the page, to send the same items again after one. */
export function newKey(): string {
  // Browsers have randomUUID only in pages that come by https or from this machine.
  return crypto.randomUUID?.() ?? crypto.getRandomValues(new Uint32Array(4)).join("-");
}

/**
 * Appends one item, or an array of 1 to 1,000. Sends them again, with the same key, until they are acknowledged: the service
 * stores them once, however often they arrive.
 *
 * Rejects with a `ProblemError` if the service refuses the items, and with a `NotAcknowledgedError` at the deadline. With
 * `expectedSeq`, an attempt whose answer was lost is found by the next one, and is no reason for a 412.
 */
export async function append<Item extends Stored, NewItem, Owner>(
  history: History<Item, NewItem, Owner>,
  items: NewItem | readonly NewItem[],
  { key = newKey(), expectedSeq, deadline = 30_000, timeout = 10_000, signal }: AppendOptions = {},
): Promise<Appended<Owner>> {
  const end = performance.now() + deadline;
  const path = expectedSeq === undefined ? history.path : `${history.path}?expectedSeq=${expectedSeq}`;
  const init = {
    method: "POST",
    // Checked here: `fetch` rejects a malformed key with the same error as a lost connection, and would be repeated.
    headers: new Headers({ "Content-Type": "application/json", "Idempotency-Key": key }),
    // Once, so that every attempt has the same items even if the caller changes them meanwhile.
    body: JSON.stringify(items),
  };
  for (let sent = 1; ; sent++) {
    const attempt = new Attempt(signal);
    try {
      return await attempt.within(Math.min(timeout, end - performance.now()), async () => {
        const response = await send(history.service, path, { ...init, signal: attempt.signal });
        // `fetch` follows a 301 or 302 of a POST with a GET, which succeeds and stores nothing.
        if (response.status !== 201) throw await failure(response);
        return response.json();
      });
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof HttpError) error.key = key;
      const wait = pause(error, sent - 1);
      if (wait === undefined) throw error;
      if (performance.now() + wait >= end) throw new NotAcknowledgedError(key, sent, error);
      await sleep(wait, signal);
    } finally {
      attempt.end();
    }
  }
}
