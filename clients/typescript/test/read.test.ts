import assert from "node:assert/strict";
import { test } from "node:test";

import { all, GoneError, history, HttpError, item, list, newest, page, pages, ProblemError, summary, trades, windows, type Stored } from "@pagebucket/client";

import { cut, json, problem, scripted } from "./scripted.js";

function listing(number: number, links: object) {
  return json({ order: "asc", page: number, items: [{ seq: number }], links });
}

async function collect<T>(all: AsyncIterable<T>): Promise<T[]> {
  const collected = [];
  for await (const one of all) collected.push(one);
  return collected;
}

test("pages and windows follow the link `next` to its end, below the path that a proxy adds", async (t) => {
  const next = (rest: string) => ({ next: `/v1/customers/7/trades?${rest}` });
  const { baseUrl, asked } = await scripted(
    t,
    listing(1, next("page=2&order=asc")),
    listing(2, next("page=3&order=asc")),
    listing(3, {}),
    listing(9, next("before=5&limit=2&asOf=9&order=desc")),
    listing(4, { prev: "/elsewhere", newer: "/elsewhere" }),
  );
  const history = trades({ baseUrl: `${baseUrl}/api/` }, 7);
  const all = await collect(pages(history, { order: "asc" }));
  assert.deepEqual(all.map(({ page }) => page), [1, 2, 3]);
  await collect(windows(history, { order: "desc", limit: 2, from: undefined! }));
  assert.deepEqual(
    asked.map(({ method, url }) => `${method} ${url}`),
    ["order=asc", "page=2&order=asc", "page=3&order=asc", "limit=2&order=desc", "before=5&limit=2&asOf=9&order=desc"].map(
      (query) => `GET /api/v1/customers/7/trades?${query}`,
    ),
  );
});

test("a walk asks for the next page when it is wanted", async (t) => {
  const { baseUrl, asked } = await scripted(t, listing(1, { next: "/v1/customers/7/trades?page=2" }), listing(2, {}));
  for await (const _ of pages(trades({ baseUrl }, 7))) break;
  assert.deepEqual(asked.map(({ url }) => url), ["/v1/customers/7/trades"]);
});

test("windows without parameters, and the newest items, are windows, not pages", async (t) => {
  const { baseUrl, asked } = await scripted(t, listing(1, {}));
  await collect(windows(trades({ baseUrl }, 7)));
  await newest(trades({ baseUrl }, 7), 20);
  assert.deepEqual(asked.map(({ url }) => url?.split("?")[1]), ["limit=100", "order=desc&limit=20"]);
});

test("every history has its routes", async (t) => {
  const { baseUrl, asked } = await scripted(t, json({ links: {} }));
  const room = history<Stored, never>({ baseUrl }, "rooms", "a/b", "messages");
  await list(room);
  await list(room, { from: "2026-01-01T00:00:00+01:00" });
  await list(room, "/v1/rooms/kitchen/messages?after=7");
  await page(room, 3);
  await item(room, 21);
  assert.deepEqual(asked.map(({ url }) => url), [
    "/v1/rooms/a%2Fb/messages",
    "/v1/rooms/a%2Fb/messages?from=2026-01-01T00%3A00%3A00%2B01%3A00",
    "/v1/rooms/kitchen/messages?after=7",
    "/v1/rooms/a%2Fb/messages/pages/3",
    "/v1/rooms/a%2Fb/messages/21",
  ]);
});

test("a summary is asked for by its parameters, and goes on by its link", async (t) => {
  const point = { start: "2004-01-09T00:00:00.000Z", count: 2, group: { ticker: "MDB" }, values: { qty: { sum: "467" } } };
  const next = "/v1/customers/7/trades/summary?by=1d&from=2004-01-10T00:00:00.000Z";
  const { baseUrl, asked } = await scripted(t, json({ points: [point], links: { next } }), json({ points: [], links: {} }));
  const mine = trades({ baseUrl }, 7);
  const first = await summary(mine, { by: "1d", tz: "Europe/Berlin", group: ["ticker", "type"], ticker: "MDB", limit: 1 });
  assert.equal(first.points[0]?.values["qty"]?.sum, "467");
  await summary(mine, first.links.next!);
  const query = "by=1d&tz=Europe%2FBerlin&group=ticker&group=type&ticker=MDB&limit=1";
  assert.deepEqual(asked.map(({ url }) => url), [`/v1/customers/7/trades/summary?${query}`, next]);
});

test("what is deleted is an error that tells where the history begins", async (t) => {
  const retired = { firstPage: 3, firstSeq: 21 };
  const { baseUrl } = await scripted(
    t,
    listing(2, { next: "/v1/customers/7/trades?page=1&order=desc" }),
    problem(410, "retired", {}, retired),
    problem(410, "retired", {}, retired),
    problem(410, "erased"),
  );
  const history = trades({ baseUrl }, 7);
  const gone = (firstPage?: number, firstSeq?: number) => (error: unknown) => {
    assert(error instanceof GoneError && error instanceof ProblemError && error instanceof HttpError);
    const { name, status, type } = error;
    assert.deepEqual([name, status, error.firstPage, error.firstSeq], ["GoneError", 410, firstPage, firstSeq]);
    assert.equal(type, firstPage ? "/problems#retired" : "/problems#erased");
    return true;
  };
  await assert.rejects(collect(pages(history, { order: "desc" })), gone(3, 21));
  await assert.rejects(collect(all(history, { after: 5 })), gone(3, 21));
  await assert.rejects(item(history, 1), gone());
});

test("a problem is an error with all its members, and other failures keep their own", async (t) => {
  const errors = [{ parameter: "page", detail: "must be a whole number" }];
  const { baseUrl, asked } = await scripted(
    t,
    problem(400, "invalid-parameter", {}, { errors, errorsOmitted: 3 }),
    problem(404, "page-not-found"),
    (response) => response.writeHead(418, { "x-request-id": "r2" }).end("a teapot"),
    cut,
  );
  const history = trades({ baseUrl }, 7);
  await assert.rejects(list(history, { page: 0 }), (error) => {
    assert(error instanceof ProblemError && error instanceof HttpError && error instanceof Error);
    const { name, message, type, title, status, detail, requestId } = error;
    assert.deepEqual(
      { name, message, type, title, status, detail, requestId },
      {
        name: "ProblemError",
        message: "A title: page must be a whole number",
        type: "/problems#invalid-parameter",
        title: "A title",
        status: 400,
        detail: "A detail.",
        requestId: "r1",
      },
    );
    assert.deepEqual(error.errors, errors);
    assert.equal(error.problem.errorsOmitted, 3);
    return true;
  });
  await assert.rejects(page(history, 9), (error) => error instanceof ProblemError && error.errors.length === 0);
  await assert.rejects(collect(pages(history)), (error) => {
    assert(error instanceof HttpError && !(error instanceof ProblemError));
    assert.deepEqual([error.status, error.body, error.requestId], [418, "a teapot", "r2"]);
    return true;
  });
  await assert.rejects(item(history, 1), TypeError);
  assert.equal(asked.length, 4, "reads are sent once");
});

test("a signal ends a read with its reason", async (t) => {
  const reason = new Error("enough");
  const controller = new AbortController();
  const { baseUrl } = await scripted(t, () => controller.abort(reason));
  await assert.rejects(list(trades({ baseUrl }, 7), {}, { signal: controller.signal }), (error) => error === reason);
});

test("the service's own fetch is called, without a receiver", async () => {
  const fetched = async function (this: unknown, ...[url]: Parameters<typeof fetch>) {
    assert.equal(this, undefined);
    return new Response(JSON.stringify({ url }));
  };
  assert.deepEqual(await list(trades({ baseUrl: "https://api.example", fetch: fetched }, 7)), {
    url: "https://api.example/v1/customers/7/trades",
  });
});
