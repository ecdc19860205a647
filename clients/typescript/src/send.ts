// One request, and what surrounds it when it is repeated: its time, and the pause before the next one.

import { failure, HttpError } from "./errors.js";
import type { Service } from "./history.js";

/** The first pause before a repeat, at most, and the longest. In milliseconds. */
const FIRST_PAUSE = 250;
const LONGEST_PAUSE = 8000;

/** The service was not reached, or cannot answer now. 502 and 504 are a proxy's words for a lost connection. */
const WORTH_A_REPEAT = [429, 502, 503, 504];

/** What `setTimeout` can count: a longer time would end at once. */
const LONGEST_TIMER = 2 ** 31 - 1;

/** The answer to a request. An answer that is not a success is thrown. */
export async function send(service: Service, path: string, init: RequestInit): Promise<Response> {
  const { baseUrl, fetch = globalThis.fetch, token } = service;
  const headers = new Headers(init.headers);
  for (let refused: string | undefined; ; ) {
    const given = typeof token === "function" ? await token(refused) : token;
    if (given) headers.set("Authorization", `Bearer ${given}`);
    const response = await fetch(baseUrl.replace(/\/$/, "") + path, { ...init, headers });
    if (response.ok) return response;
    const renewable = response.status === 401 && typeof token === "function" && refused === undefined;
    const error = await failure(response);
    if (!renewable) throw error;
    refused = given ?? "";
  }
}

/** One attempt. Its signal aborts with the caller's `outer`, when a step takes too long, and at the end. */
export class Attempt {
  readonly #controller = new AbortController();
  readonly signal = this.#controller.signal;
  readonly #abort = () => this.#controller.abort(this.outer?.reason);

  constructor(readonly outer: AbortSignal | undefined) {
    outer?.throwIfAborted();
    outer?.addEventListener("abort", this.#abort);
  }

  /** The result of one step, which may take `time` milliseconds. */
  async within<T>(time: number, step: () => Promise<T>): Promise<T> {
    const error = new DOMException(`no answer within ${Math.round(time)} ms`, "TimeoutError");
    const timer = setTimeout(() => this.lose(error), Math.min(time, LONGEST_TIMER));
    // Timers stop while a machine sleeps, which has lost its connections when it wakes up.
    const begun = Date.now();
    const clock = setInterval(() => Date.now() - begun > time && this.lose(error), 5000);
    try {
      return await step();
    } catch (error) {
      // Browsers differ in what a reader of an aborted body gets.
      throw this.signal.aborted ? this.signal.reason : error;
    } finally {
      clearTimeout(timer);
      clearInterval(clock);
    }
  }

  /** The step that goes on, or the next one, fails with this error. */
  lose(error: unknown): void {
    this.#controller.abort(error);
  }

  end(): void {
    this.outer?.removeEventListener("abort", this.#abort);
    this.#controller.abort();
  }
}

/**
 * Milliseconds to wait before repeat `n`, counted from 0, of what failed with `error`; `undefined` if a repeat cannot
 * help. The pause is `first` at most, and doubles each time. Half of it is random, so that clients that failed together come back apart.
 */
export function pause(error: unknown, n: number, first = FIRST_PAUSE): number | undefined {
  const http = error instanceof HttpError;
  // When the connection is lost, `fetch` rejects with a TypeError. Without TLS, Chromium takes a connection that closes inside
  // the head for a complete answer without a body, which is no JSON. An `Attempt` that takes too long has a TimeoutError.
  const late = error instanceof DOMException && error.name === "TimeoutError";
  const lost = late || error instanceof TypeError || error instanceof SyntaxError;
  if (http ? !WORTH_A_REPEAT.includes(error.status) : !lost) return undefined;
  const longest = Math.max(first, Math.min(first * 2 ** n, LONGEST_PAUSE));
  const backoff = (longest * (1 + Math.random())) / 2;
  return (http ? (error.retryAfter ?? 0) * 1000 : 0) + backoff;
}

/** Waits, or rejects with the signal's reason. */
export function sleep(time: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const abort = () => {
      clearTimeout(timer);
      reject(signal!.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort);
      resolve();
    }, time);
    signal?.addEventListener("abort", abort);
  });
}
