import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { test } from "node:test";

import { all, history, ProblemError, type ExportOptions, type Stored } from "@pagebucket/client";

import { cut, cutAfter, json, problem, scripted, silent, type Answer } from "./scripted.js";

interface Message extends Stored {
  roomId: string;
  text: string;
}

function room(baseUrl: string) {
  return history<Message, never>({ baseUrl }, "rooms", "kitchen", "messages");
}

/** The rows of an export, as text. */
function rows(first: number, last: number): string {
  const row = (seq: number) => JSON.stringify({ roomId: "kitchen", seq, text: `Grüße ${seq} 🎈` }) + "\n";
  return Array.from({ length: last - first + 1 }, (_, index) => row(first + index)).join("");
}

function whole(text: string): Answer {
  return (response) => response.writeHead(200, { "content-type": "application/x-ndjson" }).end(text);
}

/** The numbers of the items that arrive, and the error that ends them. */
async function read(baseUrl: string, parameters = {}, options: ExportOptions = {}) {
  const seqs: number[] = [];
  try {
    for await (const { seq, text } of all(room(baseUrl), parameters, options)) {
      assert.equal(text, `Grüße ${seq} 🎈`);
      seqs.push(seq);
    }
    return { seqs };
  } catch (error) {
    return { seqs, error };
  }
}

function to(last: number): number[] {
  return Array.from({ length: last }, (_, index) => index + 1);
}

test("every row arrives, wherever the pieces of the answer end", async (t) => {
  const bytes = Buffer.from(rows(1, 20));
  const { baseUrl, asked } = await scripted(t, (response) => {
    const next = (at: number) => (at < bytes.length ? response.write(bytes.subarray(at, at + 7), () => setImmediate(next, at + 7)) : response.end());
    next(0);
  });
  assert.deepEqual(await read(baseUrl), { seqs: to(20) });
  assert.equal(asked[0]?.url, "/v1/rooms/kitchen/messages/export.ndjson?after=0");
});

test("an empty history has no items", async (t) => {
  const { baseUrl, asked } = await scripted(t, whole(""), json({ items: [] }));
  assert.deepEqual(await read(baseUrl), { seqs: [] });
  assert.equal(asked.length, 2);
});

test("an export that looks empty is resumed if there are items", async (t) => {
  const { baseUrl, asked } = await scripted(t, cutAfter(rows(1, 4)), whole(""), json({ items: [{ seq: 5 }] }), whole(rows(5, 6)));
  assert.deepEqual(await read(baseUrl, { to: "2027-01-01T00:00:00Z" }), { seqs: to(6) });
  assert.equal(asked[2]?.url, "/v1/rooms/kitchen/messages?after=4&to=2027-01-01T00%3A00%3A00Z&limit=1");
  assert.equal(asked.length, 4);
});

test("a broken export is resumed after the last complete row, with the same span of time", async (t) => {
  const inside = rows(1, 9).slice(0, -12);
  const { baseUrl, asked } = await scripted(t, cutAfter(inside), cut, cutAfter(rows(9, 10)), whole(rows(11, 12)));
  const span = { from: "2026-01-01T00:00:00Z", to: "2027-01-01T00:00:00+01:00" };
  assert.deepEqual(await read(baseUrl, span), { seqs: to(12) });
  const queries = asked.map(({ url }) => new URL(url, baseUrl).searchParams);
  assert.deepEqual(queries.map((query) => query.get("after")), ["0", "8", "8", "10"]);
  for (const query of queries) assert.deepEqual({ from: query.get("from"), to: query.get("to") }, span);
});

test("an answer that ends inside a row is broken, although its end came", async (t) => {
  const { baseUrl, asked } = await scripted(t, whole(rows(1, 3).slice(0, -1)), whole(rows(3, 4)));
  assert.deepEqual(await read(baseUrl), { seqs: to(4) });
  assert.equal(asked.length, 2);
});

test("it is resumed as often as `resumes` says, and then the error is thrown", async (t) => {
  for (const resumes of [0, 1, 3]) {
    let seq = 0;
    const { baseUrl, asked } = await scripted(t, (response) => cutAfter(rows(++seq, seq))(response));
    const { seqs, error } = await read(baseUrl, {}, { resumes });
    assert.equal(asked.length, resumes + 1);
    assert.deepEqual(seqs, to(resumes + 1));
    assert(error instanceof TypeError, String(error));
  }
});

test("a server that is busy is asked again after the time that it says", async (t) => {
  const { baseUrl, asked } = await scripted(t, problem(503, "overloaded", { "retry-after": "1" }), whole(rows(1, 2)));
  assert.deepEqual(await read(baseUrl), { seqs: to(2) });
  assert(asked[1]!.at - asked[0]!.at >= 995);
});

test("a refusal is final", async (t) => {
  const { baseUrl, asked } = await scripted(t, problem(400, "invalid-parameter"));
  const refused = await read(baseUrl);
  assert(refused.error instanceof ProblemError);
  assert.equal(asked.length, 1);
});

test("an export that stalls is resumed", async (t) => {
  const stalls: Answer = (response) => response.writeHead(200).write(rows(1, 2));
  const { baseUrl, asked } = await scripted(t, silent, stalls, whole(rows(3, 4)));
  assert.deepEqual(await read(baseUrl, {}, { timeout: 1000 }), { seqs: to(4) });
  assert.equal(asked.length, 3);
  await Promise.all(asked.map(({ closed }) => closed));
});

test("a reader may be slow, stop, and fail", async (t) => {
  const endless = (response: ServerResponse) => void response.writeHead(200).write(rows(1, 3));
  const { baseUrl, asked } = await scripted(t, whole(rows(1, 3)), endless, endless);
  const slow = [];
  for await (const { seq } of all(room(baseUrl), {}, { timeout: 1000 })) {
    // One row takes longer than the service may.
    if (seq === 1) await new Promise((resolve) => setTimeout(resolve, 1200));
    slow.push(seq);
  }
  assert.deepEqual(slow, to(3));

  for await (const { seq } of all(room(baseUrl))) if (seq === 2) break;
  await asked[1]?.closed;

  const mine = new TypeError("mine");
  const fails = async () => {
    for await (const _ of all(room(baseUrl))) throw mine;
  };
  await assert.rejects(fails, (error) => error === mine);
  await asked[2]?.closed;
  assert.equal(asked.length, 3);
});

test("a signal ends it with its reason", async (t) => {
  const reason = new Error("enough");
  const { baseUrl, asked } = await scripted(t, (response) => response.writeHead(200).write(rows(1, 3)));
  const controller = new AbortController();
  const seqs = [];
  const reading = async () => {
    for await (const { seq } of all(room(baseUrl), {}, { signal: controller.signal })) {
      seqs.push(seq);
      if (seq === 3) setImmediate(() => controller.abort(reason));
    }
  };
  await assert.rejects(reading, (error) => error === reason);
  assert.equal(seqs.length, 3);
  await asked[0]?.closed;
  assert.equal(asked.length, 1);
});
