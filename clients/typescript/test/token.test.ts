import assert from "node:assert/strict";
import { test } from "node:test";

import { all, append, list, ProblemError, trades, type TradeInput } from "@pagebucket/client";

import { json, problem, scripted } from "./scripted.js";

const trade: TradeInput = { type: "buy", ticker: "MDB", qty: 419 };
const stored = json({ customerId: 7, ranges: [{ firstSeq: 1, lastSeq: 1 }], totalItems: 1, totalPages: 1, date: "2026-11-20T21:30:00.000Z" }, 201);
const empty = json({ items: [], totalItems: 0, totalPages: 0, links: {} });
const expired = problem(401, "unauthorized", { "www-authenticate": 'Bearer realm="pagebucket", error="invalid_token"' });

function tokens(asked: { headers: { authorization?: string | undefined } }[]) {
  return asked.map(({ headers }) => headers.authorization);
}

test("a token is sent with every request", async (t) => {
  const { baseUrl, asked } = await scripted(t, stored, empty);
  const mine = trades({ baseUrl, token: "t1" }, 7);
  await append(mine, trade);
  await list(mine);
  assert.deepEqual(tokens(asked), ["Bearer t1", "Bearer t1"]);
  assert.equal(asked[0]?.headers["content-type"], "application/json");
  await list(trades({ baseUrl }, 7));
  assert.equal(tokens(asked)[2], undefined);
});

test("a function is asked for the token of each request", async (t) => {
  const { baseUrl, asked } = await scripted(t, empty);
  let given = 0;
  const mine = trades({ baseUrl, token: async () => `t${++given}` }, 7);
  for (let n = 0; n < 3; n++) await list(mine);
  assert.deepEqual(tokens(asked), ["Bearer t1", "Bearer t2", "Bearer t3"]);
});

test("a refused token is renewed once, and the append keeps its key", async (t) => {
  const { baseUrl, asked } = await scripted(t, expired, stored);
  const refusals: (string | undefined)[] = [];
  const token = (refused?: string) => {
    refusals.push(refused);
    return refused ? "new" : "old";
  };
  await append(trades({ baseUrl, token }, 7), trade, { key: "mine" });
  assert.deepEqual(tokens(asked), ["Bearer old", "Bearer new"]);
  assert.deepEqual(asked.map(({ headers }) => headers["idempotency-key"]), ["mine", "mine"]);
  assert.deepEqual(asked[0]?.body, asked[1]?.body);
  assert.deepEqual(refusals, [undefined, "old"]);
});

test("what cannot be renewed is final", async (t) => {
  for (const [token, requests] of [["t1", 1], [() => "t1", 2], [() => "", 2], [undefined, 1]] as const) {
    const { baseUrl, asked } = await scripted(t, expired);
    const refused = (error: unknown) => error instanceof ProblemError && error.status === 401;
    await assert.rejects(append(trades({ baseUrl, token }, 7), trade), refused);
    assert.equal(asked.length, requests);
  }
});

test("a right that a token lacks is not renewed", async (t) => {
  const { baseUrl, asked } = await scripted(t, problem(403, "forbidden"));
  const refused = (error: unknown) => error instanceof ProblemError && error.status === 403;
  await assert.rejects(list(trades({ baseUrl, token: () => "t1" }, 7)), refused);
  assert.equal(asked.length, 1);
});

test("a failure to get a token is the caller's own", async (t) => {
  const { baseUrl, asked } = await scripted(t, empty);
  const mine = trades({ baseUrl, token: () => Promise.reject(new Error("signed out")) }, 7);
  await assert.rejects(append(mine, trade), /signed out/);
  await assert.rejects(list(mine), /signed out/);
  assert.equal(asked.length, 0);
});

test("an export is resumed with the token of that moment", async (t) => {
  const row = `${JSON.stringify({ customerId: 7, seq: 1, ...trade })}\n`;
  const { baseUrl, asked } = await scripted(t, (response) => response.writeHead(503).end(), (response) => response.end(row));
  let given = 0;
  const rows = [];
  for await (const { seq } of all(trades({ baseUrl, token: () => `t${++given}` }, 7))) rows.push(seq);
  assert.deepEqual(rows, [1]);
  assert.deepEqual(tokens(asked), ["Bearer t1", "Bearer t2"]);
});
