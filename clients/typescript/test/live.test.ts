import assert from "node:assert/strict";
import { once } from "node:events";
import { test, type TestContext } from "node:test";

import { GoneError, history, HttpError, live, liveBatches, liveMany, liveOwners, ProblemError, type LiveOptions, type LiveState, type Service, type Stored } from "@pagebucket/client";

import { cut, json, problem, scripted, silent, type Answer } from "./scripted.js";

interface Message extends Stored {
  text: string;
}

function room(baseUrl: string, service: Partial<Service> = {}) {
  return history<Message, never>({ ...service, baseUrl }, "rooms", "kitchen", "messages");
}

function items(first: number, last: number): Message[] {
  return Array.from({ length: last - first + 1 }, (_, index) => ({ seq: first + index, text: `Grüße ${first + index} 🎈` }));
}

function event(first: number, last: number): string {
  return `id: ${last}\ndata: ${JSON.stringify({ items: items(first, last) })}\n\n`;
}

/** Clients come back at once. */
const HEAD = "retry: 1\n\n";
const END = 'retry: 2\nevent: end\ndata: {"reason":"max-age"}\n\n';

/** A stream with these bytes, which then says no more. */
function stream(text: string): Answer {
  return (response) => response.writeHead(200, { "content-type": "text/event-stream" }).write(HEAD + text);
}

/** A stream that breaks off. */
function broken(text: string): Answer {
  return (response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(HEAD + text, () => response.destroy());
  };
}

/** The numbers of the items up to `last`, or the error before it. */
async function read(baseUrl: string, last: number, after: number | undefined = 0, options: LiveOptions = {}) {
  const seqs: number[] = [];
  try {
    for await (const { seq, text } of live(room(baseUrl), { after }, options)) {
      assert.equal(text, `Grüße ${seq} 🎈`);
      seqs.push(seq);
      if (seq === last) break;
    }
    return { seqs };
  } catch (error) {
    return { seqs, error };
  }
}

function numbers(first: number, last: number): number[] {
  return items(first, last).map(({ seq }) => seq);
}

test("items come as they are streamed, wherever the pieces of the stream end", async (t) => {
  const bytes = Buffer.from(`${HEAD}:\n\n${event(3, 5)}:\n\n${event(6, 6)}event: of-later-versions\ndata: {}\n\n${event(7, 9)}`);
  const { baseUrl, asked } = await scripted(t, (response) => {
    response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" });
    const next = (at: number) => at < bytes.length && response.write(bytes.subarray(at, at + 7), () => setImmediate(next, at + 7));
    next(0);
  });
  assert.deepEqual(await read(baseUrl, 9, 2), { seqs: numbers(3, 9) });
  await asked[0]?.closed;
  const [{ url, headers }] = asked as [(typeof asked)[0]];
  assert.deepEqual([url, headers.accept, headers["last-event-id"]], ["/v1/rooms/kitchen/messages/live?after=2", "text/event-stream", undefined]);
});

test("a stream that breaks off or ends is resumed after the last item, and no item comes twice", async (t) => {
  const inside = event(4, 9).slice(0, -9);
  const { baseUrl, asked } = await scripted(t, broken(event(1, 3) + inside), cut, broken(event(2, 4)), stream(event(5, 6) + END), stream(event(7, 8)));
  assert.deepEqual(await read(baseUrl, 8), { seqs: numbers(1, 8) });
  assert.deepEqual(asked.map(({ headers }) => headers["last-event-id"]), [undefined, "3", "3", "4", "6"]);
});

test("without a position it begins at the end, and stays there", async (t) => {
  const position = 'event: position\nid: 34\ndata: {"totalItems":34}\n\n';
  const { baseUrl, asked } = await scripted(t, broken(""), broken(position), stream(event(35, 36)));
  const found = [];
  for await (const { items, position } of liveBatches(room(baseUrl))) {
    found.push([position, items.length]);
    if (position === 36) break;
  }
  assert.deepEqual(found, [[34, 0], [36, 2]]);
  assert.deepEqual(asked.map(({ headers }) => headers["last-event-id"]), [undefined, undefined, "34"]);
  assert.equal(asked[0]?.url, "/v1/rooms/kitchen/messages/live");
});

test("after 0 comes the first item that is there, and otherwise the next one, or an error", async (t) => {
  const { baseUrl } = await scripted(t, stream(event(21, 22) + event(24, 25)));
  const { seqs, error } = await read(baseUrl, 25);
  assert.deepEqual(seqs, [21, 22]);
  assert.match(String(error), /item 24 came after item 22/);
});

test("who has seen an empty history is not shown later items instead of the first ones", async (t) => {
  const empty = 'event: position\nid: 0\ndata: {"totalItems":0}\n\n';
  const { baseUrl, asked } = await scripted(t, broken(empty), problem(410, "retired", {}, { firstSeq: 21 }));
  const batches = liveBatches(room(baseUrl));
  assert.deepEqual((await batches.next()).value, { items: [], position: 0 });
  await assert.rejects(batches.next(), (error) => error instanceof GoneError && error.firstSeq === 21);
  assert.equal(asked[1]?.headers["last-event-id"], "0");
  // One that has asked for the first item that is there has seen nothing.
  const { baseUrl: other, asked: again } = await scripted(t, broken(""), stream(event(21, 21)));
  assert.deepEqual(await read(other, 21), { seqs: [21] });
  assert.deepEqual(again.map(({ headers }) => headers["last-event-id"]), [undefined, undefined]);
});

test("several histories come by one stream, which is resumed by its last event", async (t) => {
  const of = (name: string, id: string, content: object, event = "") =>
    `${event && `event: ${event}\n`}${id && `id: ${id}\n`}data: ${JSON.stringify({ watch: `rooms/${name}/messages`, ...content })}\n\n`;
  const gone = of("hall", "", { type: "/problems#retired", title: "Retired", status: 410, detail: "It is retired.", firstSeq: 11 }, "gone");
  const erased = of("kitchen", "", { type: "/problems#erased", title: "Erased", status: 410, detail: "It is erased." }, "gone");
  const position = of("hall", "h.2.7", { totalItems: 7 }, "position");
  const { baseUrl, asked } = await scripted(
    t,
    broken(position + of("kitchen", "h.4.7", { items: items(3, 4) })),
    problem(503, "overloaded", { "retry-after": "0" }),
    stream(of("hall", "h.4.8", { items: items(8, 8) }) + gone + END),
    stream(gone + of("kitchen", "h.5.8", { items: items(5, 5) }) + erased),
  );
  const [kitchen, hall] = [room(baseUrl), history<Message, never>({ baseUrl }, "rooms", "hall", "messages")];
  const found = [];
  for await (const { history, items, position, gone } of liveMany([{ history: kitchen, after: 2 }, { history: hall }]))
    found.push([history === kitchen ? "kitchen" : "hall", items.length, position, gone?.type]);
  assert.deepEqual(found, [
    ["hall", 0, 7, undefined],
    ["kitchen", 2, 4, undefined],
    ["hall", 1, 8, undefined],
    ["hall", 0, 8, "/problems#retired"],
    ["kitchen", 1, 5, undefined],
    ["kitchen", 0, 5, "/problems#erased"],
  ]);
  assert.deepEqual(asked.map(({ headers }) => headers["last-event-id"]), [undefined, "h.4.7", "h.4.7", "h.4.8"]);
  const watch = new URL(asked[0]!.url, baseUrl).searchParams.getAll("watch");
  assert.deepEqual(watch, ["rooms/kitchen/messages:2", "rooms/hall/messages"]);
});

test("who has something new is resumed by the last id", async (t) => {
  const owners = (id: string, ...totals: number[]) => {
    const items = totals.map((totalItems, index) => ({ roomId: `r${index}`, messages: { totalItems, totalPages: 1 } }));
    return `${id && `id: ${id}\n`}data: ${JSON.stringify({ items })}\n\n`;
  };
  const answers = [broken("event: position\nid: 82A\ndata: {}\n\n" + owners("", 1, 2)), stream(owners("82C", 3) + END), problem(410, "position-too-old")] as const;
  const { baseUrl, asked } = await scripted(t, ...answers);
  const found: unknown[] = [];
  const reads = async () => {
    for await (const { owners, position } of liveOwners<{ roomId: string }>({ baseUrl }, "messages"))
      found.push([owners.map(({ owner, totalItems }) => [owner.roomId, totalItems]), position]);
  };
  await assert.rejects(reads, (error) => error instanceof GoneError && error.type === "/problems#position-too-old");
  assert.deepEqual(found, [
    [[], "82A"],
    [[["r0", 1], ["r1", 2]], undefined],
    [[["r0", 3]], "82C"],
  ]);
  assert.deepEqual(asked.map(({ headers }) => headers["last-event-id"]), [undefined, "82A", "82C"]);
});

test("several histories are asked for again where no stream comes through", async (t) => {
  const html: Answer = (response) => response.writeHead(200, { "content-type": "text/html" }).end("<p>Welcome</p>");
  const position = 'event: position\nid: h.7\ndata: {"watch":"rooms/kitchen/messages","totalItems":7}\n\n';
  const { baseUrl, asked } = await scripted(t, html, stream(position));
  for await (const { position } of liveMany([{ history: room(baseUrl) }])) {
    assert.equal(position, 7);
    break;
  }
  assert(asked.length === 2 && asked[1]!.at - asked[0]!.at > 500, "after a pause");
});

test("what is deleted or refused ends it", async (t) => {
  const gone = { type: "/problems#retired", title: "Retired", status: 410, detail: "It is retired.", firstSeq: 11, firstPage: 2 };
  for (const [answer, status, after] of [
    [stream(event(1, 2) + `event: gone\ndata: ${JSON.stringify(gone)}\n\n`), 410, 2],
    [problem(410, "retired", {}, { firstSeq: 11 }), 410, 0],
    [problem(400, "invalid-parameter"), 400, 0],
    [problem(401, "unauthorized"), 401, 0],
    [problem(403, "forbidden"), 403, 0],
    [problem(404, "not-found"), 404, 0],
  ] as const) {
    const { baseUrl, asked } = await scripted(t, answer);
    const { seqs, error } = await read(baseUrl, 9);
    assert.deepEqual(seqs, numbers(1, after));
    assert(error instanceof ProblemError && error.status === status, String(error));
    if (status === 410) assert(error instanceof GoneError && error.firstSeq === 11);
    assert.equal(asked.length, 1);
  }
});

test("a service that has no place, or that a proxy does not reach, is asked again", async (t) => {
  const states: LiveState[] = [];
  const busy = problem(503, "too-many-live-readers", { "retry-after": "1" });
  const { baseUrl, asked } = await scripted(t, broken(event(1, 1)), busy, (response) => response.writeHead(502).end(), stream(event(2, 2)));
  assert.deepEqual(await read(baseUrl, 2, 0, { onState: (state) => states.push(state) }), { seqs: [1, 2] });
  assert.deepEqual(states, ["stream", "waiting", "stream"]);
  assert(asked[2]!.at - asked[1]!.at >= 995);
  assert(asked.every(({ url }) => url.includes("/live")));
});

test("it is polled where no stream comes through, and streamed again when a poll fails", async (t) => {
  const other: Answer = (response) => response.writeHead(200, { "content-type": "text/html" }).end("<p>Welcome</p>");
  const headOnly: Answer = (response) => response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
  for (const held of [other, headOnly, silent]) {
    const states: LiveState[] = [];
    const onState = (state: LiveState) => states.push(state);
    const stops = json({ items: [] });
    const answers = [json({ items: items(3, 102) }), stops, json({ items: items(103, 104) }), cut, stream(event(105, 105))];
    const { baseUrl, asked } = await scripted(t, held, ...answers);
    assert.deepEqual(await read(baseUrl, 105, 2, { timeout: 1000, onState }), { seqs: numbers(3, 105) });
    const path = "/v1/rooms/kitchen/messages";
    const polls = [2, 102, 102, 104].map((after) => `${path}?after=${after}&limit=100&wait=20`);
    assert.deepEqual(asked.map(({ url }) => url), [`${path}/live?after=2`, ...polls, `${path}/live?after=104`]);
    assert.deepEqual(states, ["polling", "waiting", "polling", "waiting", "stream"]);
  }
});

test("a stream is tried again after five minutes of polls", async (t) => {
  const other: Answer = (response) => response.writeHead(200, { "content-type": "text/html" }).end("<p>Welcome</p>");
  const { baseUrl, asked } = await scripted(t, other, json({ items: items(1, 2) }), stream(event(3, 3)));
  const now = Date.now;
  t.after(() => (Date.now = now));
  for await (const { seq } of live(room(baseUrl), { after: 0 })) {
    if (seq === 2) Date.now = () => now() + 301_000;
    if (seq === 3) break;
  }
  assert.deepEqual(asked.map(({ url }) => url.includes("/live")), [true, false, true]);
});

test("after an abort no item comes, also none that was read with others", async (t) => {
  const { baseUrl } = await scripted(t, stream(event(1, 5)));
  const controller = new AbortController();
  const seqs: number[] = [];
  const reads = async () => {
    for await (const { seq } of live(room(baseUrl), { after: 0 }, { signal: controller.signal })) {
      seqs.push(seq);
      controller.abort(new Error("enough"));
    }
  };
  await assert.rejects(reads, /enough/);
  assert.deepEqual(seqs, [1]);
});

test("a poll without a position begins at the end", async (t) => {
  const { baseUrl, asked } = await scripted(t, json({}), json({ totalItems: 7, items: items(7, 7) }), json({ items: items(8, 9) }));
  const found = [];
  for await (const { items, position } of liveBatches(room(baseUrl))) {
    found.push([position, items.length]);
    if (position === 9) break;
  }
  assert.deepEqual(found, [[7, 0], [9, 2]]);
  assert.match(asked[1]!.url, /messages\?order=desc&limit=1$/);
});

test("a stream without a byte for too long is resumed, also after the sleep of the machine", async (t) => {
  const { baseUrl, asked } = await scripted(t, stream(event(1, 1)), stream(event(2, 2)), stream(event(3, 3)));
  const found = [];
  for await (const { seq } of live(room(baseUrl), { after: 0 }, { timeout: 1000 })) {
    found.push(seq);
    // Longer than the service may take: the time of the reader is its own.
    if (seq === 1) await new Promise((resolve) => setTimeout(resolve, 1200));
    if (seq === 3) break;
  }
  assert.deepEqual([found, asked.length], [[1, 2, 3], 3]);

  const { setInterval } = globalThis;
  let slept = 0;
  const intervals = t.mock.method(globalThis, "setInterval", (work: () => void) => setInterval(work, 10)).mock;
  const { now } = Date;
  t.mock.method(Date, "now", () => now() + slept);
  const asleep = await scripted(t, stream(event(1, 1)), stream(event(2, 2)));
  const reader = live(room(asleep.baseUrl), { after: 0 });
  assert.equal((await reader.next()).value?.seq, 1);
  const waits = intervals.callCount();
  const next = reader.next();
  while (intervals.callCount() === waits) await new Promise(setImmediate);
  slept = 3_600_000;
  assert.equal((await next).value?.seq, 2);
  await reader.return();
});

/** Node.js has no events of the network. */
function network(t: TestContext): EventTarget {
  const target = new EventTarget();
  const { addEventListener, removeEventListener } = globalThis;
  t.after(() => Object.assign(globalThis, { addEventListener, removeEventListener }));
  Object.assign(globalThis, { addEventListener: target.addEventListener.bind(target), removeEventListener: target.removeEventListener.bind(target) });
  return target;
}

test("a machine that is online again connects at once", async (t) => {
  const target = network(t);
  const patient = stream("retry: 1000000\n\n" + event(1, 1));
  const { baseUrl, asked } = await scripted(t, patient, broken("retry: 1000000\n\n" + event(2, 2)), stream(event(3, 3)));
  const states = new EventTarget();
  const reader = live(room(baseUrl), { after: 0 }, { onState: (state) => states.dispatchEvent(new Event(state)) });
  assert.equal((await reader.next()).value?.seq, 1);
  const second = reader.next();
  target.dispatchEvent(new Event("online"));
  assert.equal((await second).value?.seq, 2);
  await asked[0]?.closed;
  const waiting = once(states, "waiting");
  const third = reader.next();
  await waiting;
  setImmediate(() => target.dispatchEvent(new Event("online")));
  assert.equal((await third).value?.seq, 3);
  await reader.return();
});

test("a signal ends it with its reason, also between two connections, and a reader by itself", async (t) => {
  for (const answer of [stream(event(1, 1)), broken("retry: 1000000\n\n" + event(1, 1)), silent]) {
    const { baseUrl, asked } = await scripted(t, answer);
    const controller = new AbortController();
    const reason = new Error("enough");
    const reading = read(baseUrl, 9, 0, { signal: controller.signal });
    while (asked.length === 0) await new Promise(setImmediate);
    setTimeout(() => controller.abort(reason), 50);
    assert.equal((await reading).error, reason);
    await asked[0]?.closed;
    assert.equal((await read(baseUrl, 9, 0, { signal: controller.signal })).error, reason);
    assert.equal(asked.length, 1);
  }
  const { baseUrl, asked } = await scripted(t, stream(event(1, 1)));
  const mine = new TypeError("mine");
  const fails = async () => {
    for await (const _ of live(room(baseUrl), { after: 0 })) throw mine;
  };
  await assert.rejects(fails, (error) => error === mine);
  await asked[0]?.closed;
});

test("a restored backup ends it: what comes next may not follow", async (t) => {
  const { baseUrl, asked } = await scripted(t, stream(event(1, 1) + END.replace("max-age", "epoch")), stream(event(2, 2)));
  const items = live(room(baseUrl), { after: 0 });
  assert.equal((await items.next()).value?.seq, 1);
  await assert.rejects(items.next(), /a backup was restored/);
  assert.equal(asked.length, 1);
});

test("a token that expires is renewed", async (t) => {
  const { baseUrl, asked } = await scripted(t, stream(event(1, 1) + END.replace("max-age", "expired")), problem(401, "unauthorized"), stream(event(2, 2)));
  let given = 0;
  for await (const { seq } of live(room(baseUrl, { token: () => `t${++given}` }), { after: 0 })) if (seq === 2) break;
  assert.deepEqual(asked.map(({ headers }) => headers.authorization), ["Bearer t1", "Bearer t2", "Bearer t3"]);
  const { baseUrl: refused } = await scripted(t, problem(401, "unauthorized"));
  await assert.rejects(live(room(refused, { token: () => "old" })).next(), (error) => error instanceof HttpError && error.status === 401);
});
