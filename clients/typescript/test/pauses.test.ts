// Alone in its process: a connection would have timers of its own.

import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";

import { append, trades } from "@pagebucket/client";

/** The pauses before the repeats of an append, when `Math.random` returns `random`. None is waited for. */
async function pauses(t: TestContext, random: number): Promise<number[]> {
  const { setTimeout } = globalThis;
  const pauses: number[] = [];
  t.mock.method(Math, "random", () => random);
  t.mock.method(globalThis, "setTimeout", (work: () => void, time: number) => {
    // The time of an attempt is no pause.
    if (time === 60_000) return setTimeout(work, time);
    pauses.push(time);
    return setTimeout(work, 0);
  });
  const fetch = async () => {
    if (pauses.length < 8) throw new TypeError("lost");
    return new Response("{}", { status: 201 });
  };
  await append(trades({ baseUrl: "http://localhost", fetch }, 7), { type: "buy", ticker: "MDB", qty: 419 }, { deadline: 90_000, timeout: 60_000 });
  t.mock.restoreAll();
  return pauses;
}

test("pauses double up to a limit, and half of each is random", async (t) => {
  assert.deepEqual(await pauses(t, 0), [125, 250, 500, 1000, 2000, 4000, 4000, 4000]);
  assert.deepEqual(await pauses(t, 1), [250, 500, 1000, 2000, 4000, 8000, 8000, 8000]);
});
