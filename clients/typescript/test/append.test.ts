import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";

import { append, HttpError, newKey, NotAcknowledgedError, ProblemError, trades, type TradeInput } from "@pagebucket/client";

import { cut, cutAfter, json, problem, scripted, silent, type Answer } from "./scripted.js";

const trade: TradeInput = { type: "buy", ticker: "MDB", qty: 419 };
const stored = { customerId: 7, ranges: [{ firstSeq: 1, lastSeq: 1 }], totalItems: 1, totalPages: 1, date: "2026-11-20T21:30:00.000Z" };
const created = json(stored, 201);

/** The error that a promise ends with. */
async function failure(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => assert.fail("it succeeded"),
    (error: unknown) => error,
  );
}

async function elapsed(promise: Promise<unknown>): Promise<number> {
  const start = performance.now();
  await promise.catch(() => {});
  return performance.now() - start;
}

test("an item is sent once, with a key of its own", async (t) => {
  const { baseUrl, asked } = await scripted(t, created);
  assert.deepEqual(await append(trades({ baseUrl }, 7), trade), stored);
  await append(trades({ baseUrl }, 7), [trade, trade]);
  assert.equal(asked.length, 2);
  const [one, many] = asked;
  assert.equal(`${one?.method} ${one?.url}`, "POST /v1/customers/7/trades");
  assert.equal(one?.headers["content-type"], "application/json");
  assert.deepEqual([one?.body, many?.body].map((body) => JSON.parse(body!)), [trade, [trade, trade]]);
  const keys = asked.map(({ headers }) => headers["idempotency-key"] as string);
  for (const key of keys) assert.match(key, /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
  assert.notEqual(keys[0], keys[1]);
});

test("the expected total is in the address, also of a repeat, and a 412 is final and has the total", async (t) => {
  const { baseUrl, asked } = await scripted(t, cut, problem(412, "unexpected-seq", {}, { totalItems: 12 }));
  const error = await failure(append(trades({ baseUrl }, 7), trade, { expectedSeq: 0 }));
  assert(error instanceof ProblemError);
  assert.deepEqual([error.status, error.problem.totalItems], [412, 12]);
  assert.deepEqual(asked.map(({ url }) => url), Array(2).fill("/v1/customers/7/trades?expectedSeq=0"));
});

test("a redirect that makes a read of the append is no acknowledgement", async (t) => {
  const redirect: Answer = (response) => response.writeHead(301, { location: "/v1/customers/7/trades" }).end();
  const { baseUrl, asked } = await scripted(t, redirect, json({ items: [] }));
  const error = await failure(append(trades({ baseUrl }, 7), trade));
  assert.ok(error instanceof HttpError, `${error}`);
  assert.deepEqual(asked.map(({ method }) => method), ["POST", "GET"]);
});

test("whatever leaves the outcome open is repeated, with the same key and body", async (t) => {
  const answers: Record<string, Answer> = {
    "503 with Retry-After": problem(503, "overloaded", { "retry-after": "0" }),
    "503 without": problem(503, "outcome-unknown"),
    "a proxy's 503": (response) => response.writeHead(503).end("<html>"),
    "429": (response) => response.writeHead(429).end(),
    "a gateway's problem": (response) => response.writeHead(503, { "content-type": "application/problem+json" }).end('{"title":"Busy"}'),
    "a proxy's 502": (response) => response.writeHead(502).end(),
    "a proxy's 504": (response) => response.writeHead(504).end(),
    "a lost connection": cut,
    "half an acknowledgement": cutAfter('{"customerId":7,', 201),
    "half a refusal": cutAfter("{", 422),
    "half an acknowledgement that looks complete": (response) => response.writeHead(201).end('{"customerId":7,'),
    "half a problem that looks complete": (response) => response.writeHead(422, { "content-type": "application/problem+json" }).end("{"),
    "silence": silent,
  };
  for (const [name, answer] of Object.entries(answers)) {
    await t.test(name, async (t) => {
      const { baseUrl, asked } = await scripted(t, answer, created);
      const items = [{ ...trade }];
      const acknowledged = append(trades({ baseUrl }, 7), items, { key: "mine", timeout: 1000 });
      // What the caller does with the items meanwhile concerns no repeat.
      items[0]!.qty = 1;
      assert.deepEqual(await acknowledged, stored);
      assert.deepEqual(asked.map(({ headers }) => headers["idempotency-key"]), ["mine", "mine"]);
      assert.deepEqual(asked.map(({ body }) => body), [JSON.stringify([trade]), JSON.stringify([trade])]);
    });
  }
});

test("a refusal is final", async (t) => {
  for (const status of [400, 408, 409, 413, 422, 500]) {
    const { baseUrl, asked } = await scripted(t, problem(status, "some"), created);
    const error = await failure(append(trades({ baseUrl }, 7), trade, { key: "mine" }));
    assert(error instanceof ProblemError);
    assert.equal(error.status, status);
    assert.equal(error.key, "mine");
    assert.equal(asked.length, 1);
  }
});

test("other errors are kept, and not repeated", async (t) => {
  const { baseUrl, asked } = await scripted(t, (response) => response.writeHead(401).end("who?"));
  const unknown = await failure(append(trades({ baseUrl }, 7), trade));
  assert(unknown instanceof HttpError && !(unknown instanceof ProblemError));
  assert.deepEqual([unknown.status, unknown.body], [401, "who?"]);
  assert.equal(asked.length, 1);

  const noCredentials = new Error("no credentials");
  let calls = 0;
  const fetch = () => {
    calls += 1;
    return Promise.reject(noCredentials);
  };
  assert.equal(await failure(append(trades({ baseUrl, fetch }, 7), trade)), noCredentials);
  assert.equal(calls, 1);

  const start = performance.now();
  assert((await failure(append(trades({ baseUrl }, 7), trade, { key: "two\nlines" }))) instanceof TypeError);
  assert(performance.now() - start < 5000, "a malformed key is no lost connection");
  assert.equal(asked.length, 1);
});

test("Retry-After is honoured, as seconds and as a date", async (t) => {
  const soon = new Date(Math.ceil(Date.now() / 1000 + 1) * 1000);
  const { baseUrl, asked } = await scripted(
    t,
    problem(503, "overloaded", { "retry-after": soon.toUTCString() }),
    problem(503, "overloaded", { "retry-after": "1" }),
    created,
  );
  await append(trades({ baseUrl }, 7), trade);
  const [, second, third] = asked.map(({ at }) => performance.timeOrigin + at);
  assert(second! >= soon.getTime() - 5, `${second} ${soon.getTime()}`);
  assert(third! - second! >= 995, `${third! - second!}`);
});

test("at the deadline, the error carries the key", async (t) => {
  const { baseUrl, asked } = await scripted(t, problem(503, "overloaded"));
  const promise = append(trades({ baseUrl }, 7), trade, { deadline: 1500 });
  assert((await elapsed(promise)) < 5000);
  const error = await failure(promise);
  assert(error instanceof NotAcknowledgedError);
  assert.equal(error.key, asked[0]?.headers["idempotency-key"]);
  assert(asked.length > 1);
  assert.equal(error.attempts, asked.length);
  assert(error.cause instanceof ProblemError);
  assert.match(error.message, /attempts, the last: ProblemError: A title: A detail\.$/);

  const chosen = await failure(append(trades({ baseUrl }, 7), trade, { deadline: 50, key: "mine" }));
  assert(chosen instanceof NotAcknowledgedError);
  assert.equal(chosen.key, "mine");
});

test("a pause that ends after the deadline is not begun", async (t) => {
  const { baseUrl, asked } = await scripted(t, problem(503, "overloaded", { "retry-after": "60" }));
  assert((await elapsed(append(trades({ baseUrl }, 7), trade))) < 5000);
  assert.equal(asked.length, 1);
});

test("the deadline ends an attempt that nobody answers", async (t) => {
  const { baseUrl } = await scripted(t, silent);
  const start = performance.now();
  const error = await failure(append(trades({ baseUrl }, 7), trade, { deadline: 300 }));
  const time = performance.now() - start;
  assert(time >= 295 && time < 5000, `${time}`);
  assert(error instanceof NotAcknowledgedError);
  assert.equal((error.cause as Error).name, "TimeoutError");
});

test("an attempt ends the same where `fetch` rejects without the reason, as in browsers of 2022", async () => {
  let calls = 0;
  const fetch = (_: unknown, init?: RequestInit) => {
    if (++calls === 2) return Promise.resolve(new Response(JSON.stringify(stored), { status: 201 }));
    return new Promise<Response>((_, reject) => {
      init?.signal?.addEventListener("abort", () => reject(new DOMException("The operation was aborted.", "AbortError")));
    });
  };
  assert.deepEqual(await append(trades({ baseUrl: "http://localhost", fetch }, 7), trade, { timeout: 100 }), stored);
});

test("a deadline may be far", async (t) => {
  const { baseUrl, asked } = await scripted(t, created);
  await append(trades({ baseUrl }, 7), trade, { deadline: Infinity, timeout: Infinity });
  assert.equal(asked.length, 1);
});

test("a signal ends the attempts with its reason: before, during, and between them", async (t) => {
  const reason = new Error("the user went away");
  const { baseUrl, asked } = await scripted(t, () => during.abort(reason), problem(503, "overloaded", { "retry-after": "20" }));
  const [during, between] = [new AbortController(), new AbortController()];
  const ended = async (signal: AbortSignal) => {
    const start = performance.now();
    assert.equal(await failure(append(trades({ baseUrl }, 7), trade, { signal })), reason);
    assert(performance.now() - start < 5000);
  };
  await ended(AbortSignal.abort(reason));
  assert.equal(asked.length, 0);
  await ended(during.signal);
  assert.equal(asked.length, 1);

  const { setTimeout } = globalThis;
  t.mock.method(globalThis, "setTimeout", (work: () => void, time: number) => {
    // Longer than an attempt: the pause that the answer asks for.
    if (time >= 20_000 && time < 21_000) setImmediate(() => between.abort(reason));
    return setTimeout(work, time);
  });
  await ended(between.signal);
  assert.equal(asked.length, 2);
});

test("a signal of one's own comes before the deadline, and is let go", async (t) => {
  const { baseUrl } = await scripted(t, silent, problem(503, "overloaded"), created);
  const late = await failure(append(trades({ baseUrl }, 7), trade, { signal: AbortSignal.timeout(300), deadline: 350 }));
  assert.equal((late as Error).name, "TimeoutError");

  const { signal } = new AbortController();
  await append(trades({ baseUrl }, 7), trade, { signal });
  assert.deepEqual(getEventListeners(signal, "abort"), []);
});

test("a key needs no secure context", (t) => {
  assert.notEqual(newKey(), newKey());
  Object.defineProperty(crypto, "randomUUID", { value: undefined, configurable: true });
  t.after(() => Reflect.deleteProperty(crypto, "randomUUID"));
  assert.match(newKey(), /^[!-~]{16,255}$/);
  assert.notEqual(newKey(), newKey());
});
