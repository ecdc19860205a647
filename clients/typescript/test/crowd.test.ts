// Many live readers of three kinds: `EventSource` of npm and of Chromium, and this client. Each is disconnected at random, and resumes
// at the other of two instances, also while one of them, or mongod, is killed.

import assert from "node:assert/strict";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, suite, test, type TestContext } from "node:test";

import { all, append, live, trades, type Trade, type TradeInput } from "@pagebucket/client";
import { EventSource } from "eventsource";

import { Browser, CHROMIUM } from "./browser.js";
import { proxy } from "./proxy.js";
import { RealService, skip } from "./service.js";

const OWNERS = 16;
const WRITERS = 64;
const READERS = 64;
/** Appends of a writer, and their items. */
const APPENDS = 6;
const ITEMS = 5;
const COUNT = (WRITERS / OWNERS) * APPENDS * ITEMS;

type Item = Omit<Trade, "customerId">;

/** Reads to the end by a client that only `EventSource` has; runs in Node.js and in the browser. */
function listen(Source: typeof globalThis.EventSource, url: string, count: number): Promise<Item[]> {
  const found: Item[] = [];
  return new Promise((resolve) => {
    const open = () => {
      const source = new Source(`${url}?after=${found.at(-1)?.seq ?? 0}`);
      source.onmessage = ({ data }) => {
        if (found.push(...JSON.parse(data).items) < count) return;
        source.close();
        resolve(found);
      };
      // It gives up for good after any answer but 200, such as a 503 while mongod starts.
      source.onerror = () => {
        if (source.readyState === source.CLOSED) setTimeout(open, 200);
      };
    };
    open();
  });
}

async function read(baseUrl: string, owner: number): Promise<Item[]> {
  const found: Item[] = [];
  for await (const item of live(trades({ baseUrl }, owner), { after: 0 })) if (found.push(item) === COUNT) break;
  return found;
}

/** Appends to one owner, at one of the instances; tells of each append, with at most so many milliseconds between them. */
async function write(baseUrl: string, owner: number, writer: number, pause: number, stored: () => void): Promise<void> {
  const item = (number: number): TradeInput => ({ type: "buy", ticker: "MDB", qty: 1000 * (writer + 1) + number });
  for (let n = 0; n < APPENDS; n++) {
    const items = Array.from({ length: ITEMS }, (_, index) => item(n * ITEMS + index));
    await append(trades({ baseUrl }, owner), items, { deadline: 120_000 });
    stored();
    await new Promise((resolve) => setTimeout(resolve, Math.random() * pause));
  }
}

/** Waits for shares of all appends. */
class Progress {
  #stored = 0;
  #waiting: { share: number; resolve: () => void }[] = [];

  stored = () => {
    this.#stored++;
    for (const { share, resolve } of this.#waiting) if (this.#stored >= share * WRITERS * APPENDS) resolve();
  };

  reached(share: number): Promise<void> {
    return new Promise((resolve) => this.#waiting.push({ share, resolve }));
  }
}

const why = skip || (CHROMIUM || process.env["CI"] ? false : "CHROMIUM names no browser");

suite("a crowd of live readers", { skip: why }, () => {
  let one: RealService, other: RealService, site: Server, browser: Browser;
  before(async () => {
    site = createServer((_, response) => response.writeHead(200, { "content-type": "text/html" }).end("<!doctype html><title>crowd</title>"));
    await new Promise<void>((resolve) => site.listen(0, "127.0.0.1", resolve));
    [one, browser] = await Promise.all([new RealService().start(), Browser.open()]);
    other = await new RealService([], one).start();
  });
  after(async () => {
    await browser?.close();
    site?.close();
    site?.closeAllConnections();
    await other?.remove();
    await one?.remove();
  });

  /** Each reader has what an export has, once and in order. Of owners from `first` on, whom no other run has. */
  async function reads(t: TestContext, first: number, pause: number, harm?: (progress: Progress) => Promise<void>): Promise<void> {
    await browser.go(`http://127.0.0.1:${(site.address() as AddressInfo).port}/`);
    const instances = [one.baseUrl, other.baseUrl];
    // Each within what the items take, and not inside the head of an answer.
    const cuts = Array.from({ length: READERS }, () => Array.from({ length: 2 }, () => 1000 + Math.floor(Math.random() * 2500)));
    t.diagnostic(`connections are cut after ${cuts.join(" ")} bytes`);
    const turned = (reader: number) => (reader % 2 ? instances : [...instances].reverse());
    const wires = await Promise.all(cuts.map((cuts, reader) => proxy(t, turned(reader), (n) => cuts[n] ?? Infinity)));
    const readers = wires.map(({ baseUrl }, reader) => ({ baseUrl, owner: first + (reader % OWNERS) }));
    const url = ({ baseUrl, owner }: (typeof readers)[0]) => `${baseUrl}/v1/customers/${owner}/trades/live`;
    // Each owner has readers of all kinds.
    const [ofNpm, ofChromium, ours] = [0, 1, 2].map((kind) => readers.filter((_, reader) => Math.floor(reader / OWNERS + reader) % 3 === kind)) as [
      typeof readers,
      typeof readers,
      typeof readers,
    ];
    const inBrowser = browser.value(
      `Promise.all(${JSON.stringify(ofChromium.map(url))}.map((url) => (${listen})(EventSource, url, ${COUNT})))`,
    ) as Promise<Item[][]>;
    const reading = Promise.all([
      Promise.all(ofNpm.map((reader) => listen(EventSource as typeof globalThis.EventSource, url(reader), COUNT))),
      inBrowser,
      Promise.all(ours.map(({ baseUrl, owner }) => read(baseUrl, owner))),
    ]);
    const progress = new Progress();
    const writing = Array.from({ length: WRITERS }, (_, writer) =>
      write(instances[Math.floor(writer / OWNERS) % 2]!, first + (writer % OWNERS), writer, pause, progress.stored),
    );
    await Promise.all([...writing, harm?.(progress)]);
    const exported = await Promise.all(
      Array.from({ length: OWNERS }, async (_, index) => {
        const rows = [];
        for await (const { customerId: _, ...item } of all(trades({ baseUrl: instances[index % 2]! }, first + index))) rows.push(item);
        assert.deepEqual(rows.map(({ seq }) => seq), Array.from({ length: COUNT }, (_, index) => index + 1));
        return rows;
      }),
    );
    const found = (await reading).flat();
    assert.equal(found.length, READERS);
    for (const [index, { owner }] of [ofNpm, ofChromium, ours].flat().entries()) assert.deepEqual(found[index], exported[owner - first]);
    assert(wires.every(({ connections }) => connections > 2), `${wires.map(({ connections }) => connections)}`);
  }

  test("each of 64 has what an export has, once and in order, whatever is cut", (t) => reads(t, 1, 300));

  test("the same while an instance is killed, and mongod", (t) =>
    reads(t, 1 + OWNERS, 1500, async (progress) => {
      await progress.reached(0.2);
      await other.kill();
      await progress.reached(0.4);
      await other.start();
      await progress.reached(0.6);
      one.killMongod();
    }));
});
