import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join } from "node:path";
import { after, before, suite, test } from "node:test";

import { all, append, list, pages, trades, type TradeInput } from "@pagebucket/client";
import { build } from "esbuild";

import { Browser, CHROMIUM } from "./browser.js";
import { proxy, randomCuts } from "./proxy.js";
import { RealService, root, skip } from "./service.js";

declare global {
  /** The bundle, in the page. */
  var client: typeof import("@pagebucket/client");
}

const TYPES: Record<string, string> = { ".css": "text/css", ".html": "text/html", ".js": "text/javascript" };
const BUNDLE = '<!doctype html><title>bundle</title><script type="module">import * as client from "./client.js"; globalThis.client = client</script>';

/** Pages and scripts that a test adds, by their paths. */
const added = new Map<string, string>();

/** The bundle with everything, and the files of the repository that a page may ask for. */
async function site(): Promise<Server> {
  const stdin = { contents: 'export * from "@pagebucket/client";', resolveDir: import.meta.dirname };
  const { outputFiles } = await build({ stdin, bundle: true, minify: true, format: "esm", target: "es2022", write: false });
  const server = createServer(async ({ url }, response) => {
    const { pathname } = new URL(url!, "http://localhost");
    const path = pathname.endsWith("/") ? `${pathname}index.html` : pathname;
    const answer = (type: string, body: string | Uint8Array) => response.writeHead(200, { "content-type": type }).end(body);
    if (added.has(path)) answer(TYPES[extname(path)]!, added.get(path)!);
    else if (path === "/bundle.html") answer(TYPES[".html"]!, BUNDLE);
    else if (path === "/v1/customers/1/trades/export.ndjson") response.writeHead(200).write('{"seq":1}\n'); // and no more
    else if (path === "/client.js") answer(TYPES[".js"]!, outputFiles[0]!.contents);
    else if (!/^\/(examples\/frontend|clients\/typescript\/(dist|dist\/live|node_modules\/eventsource-parser\/dist))\/[\w.]+$/.test(path)) response.writeHead(404).end();
    else answer(TYPES[extname(path)]!, await readFile(join(root, path)));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server;
}

/** With digits that a compressed answer cannot do without. */
function manyTrades(count: number): TradeInput[] {
  const price = (index: number) => String(1 + ((index * 2654435761) % 4294967291));
  return Array.from({ length: count }, (_, index) => ({ type: "buy", ticker: "MDB", qty: index + 1, price: price(index) }));
}

const why = skip || (CHROMIUM || process.env["CI"] ? false : "CHROMIUM names no browser");

suite("in a browser", { skip: why }, () => {
  let service: RealService, server: Server, origin: string, browser: Browser;
  let customers = 0;
  before(async () => {
    [service, server, browser] = await Promise.all([new RealService().start(), site(), Browser.open()]);
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(async () => {
    await browser?.close();
    server?.close();
    server?.closeAllConnections();
    await service?.remove();
  });

  /** Opens the page with the bundle. */
  async function bundle() {
    await browser.go(`${origin}/bundle.html`);
    await browser.until("globalThis.client !== undefined");
    return ++customers;
  }

  test("the candle chart of examples/candle-chart is drawn, and its last candle is live", async () => {
    const customer = ++customers;
    const history = trades({ baseUrl: service.baseUrl }, customer);
    const buy = (price: string) => append(history, [{ type: "buy", ticker: "MDB", qty: 1, price }]);
    await buy("10");
    const address = "http://127.0.0.1:8080/v1/customers/123/trades";
    const example = (name: string) => readFile(join(root, "examples/candle-chart", name), "utf8");
    const script = await example("chart.js");
    assert.ok(script.includes(address));
    added.set("/chart.html", await example("index.html"));
    // The variables of a module are its own.
    added.set("/chart.js", `${script.replace(address, `${service.baseUrl}/v1/customers/${customer}/trades`)}\nglobalThis.drawn = () => candles;`);
    await browser.go(`${origin}/chart.html`);
    await browser.until("globalThis.drawn?.().at(-1)?.close === 10");
    for (const price of [12.5, 9]) {
      await buy(String(price));
      await browser.until(`drawn().at(-1).close === ${price}`);
    }
    // A late trade of an earlier minute is in its candle.
    const date = new Date(Date.now() - 5 * 60_000).toISOString();
    await append(history, [{ type: "buy", ticker: "MDB", qty: 1, price: "7", date }]);
    await browser.until("drawn().some(({ open, count }) => open === 7 && count === 1)");
    const colours = "document.querySelector('canvas').getContext('2d').getImageData(0, 0, 800, 300).data";
    await browser.until(`[...${colours}].some((value) => value > 0)`);
    assert.deepEqual(browser.uncaught, []);
  });

  test("the bundle appends, walks, and reads the whole history from another origin", async () => {
    const customer = await bundle();
    const found = await browser.run(
      async (baseUrl, customer, items) => {
        const { all, append, pages, trades, windows } = client;
        const history = trades({ baseUrl }, customer);
        const { ranges } = await append(history, items);
        const shown = { pages: [] as number[], windows: [] as number[], all: [] as number[] };
        for await (const { items } of pages(history)) shown.pages.push(items.length);
        for await (const { items } of windows(history, { order: "desc", limit: 20 })) shown.windows.push(items.length);
        for await (const { qty } of all(history)) shown.all.push(qty);
        return { ranges, ...shown };
      },
      service.baseUrl,
      customer,
      manyTrades(25),
    );
    assert.deepEqual(found, {
      ranges: [{ firstSeq: 1, lastSeq: 25 }],
      pages: [10, 10, 5],
      windows: [20, 5],
      all: manyTrades(25).map(({ qty }) => qty),
    });
  });

  test("a problem is the same there, with its request's id", async () => {
    const customer = await bundle();
    const problem = await browser.run(
      async (baseUrl, customer) => {
        const { append, HttpError, ProblemError, trades } = client;
        const error: unknown = await append(trades({ baseUrl }, customer), { type: "buy", ticker: "MDB", qty: 1.5 }).catch((error) => error);
        if (!(error instanceof ProblemError) || !(error instanceof HttpError)) return String(error);
        return { type: error.type, pointer: error.errors[0]?.pointer, same: error.requestId === error.problem.requestId };
      },
      service.baseUrl,
      customer,
    );
    assert.deepEqual(problem, { type: "/problems#invalid-item", pointer: "/qty", same: true });
  });

  test("lost answers are repeated there, and cut exports resumed", async (t) => {
    const customer = await bundle();
    // How many connections it needs is the browser's choice.
    const appends = await proxy(t, service.baseUrl, (n) => (n < 4 ? 300 : Infinity));
    const stored = await browser.run(
      async (baseUrl, customer, items) => (await client.append(client.trades({ baseUrl }, customer), items)).totalItems,
      appends.baseUrl,
      customer,
      manyTrades(1),
    );
    assert.equal(stored, 1);
    const history = trades(service, customer);
    assert.equal((await list(history)).totalItems, 1);
    assert(appends.connections > 4, `${appends.connections}`);

    const items = manyTrades(4000);
    for (let next = 1; next < items.length; next += 1000) await append(history, items.slice(next, next + 1000));
    const exports = await proxy(t, service.baseUrl, (n) => [300, 12_000, 0, 12_001][n] ?? Infinity);
    const read = await browser.run(
      async (baseUrl, customer) => {
        const found: number[] = [];
        for await (const { qty } of client.all(client.trades({ baseUrl }, customer), {}, { resumes: 20 })) found.push(qty);
        return found;
      },
      exports.baseUrl,
      customer,
    );
    assert.deepEqual(read, items.map(({ qty }) => qty));
    assert(exports.connections > 4, `${exports.connections}`);
  });

  test("a live history comes there once and in order, whatever is cut, also by EventSource", async (t) => {
    const customer = await bundle();
    const cuts = randomCuts(t);
    const [ours, theirs] = [await proxy(t, service.baseUrl, cuts), await proxy(t, service.baseUrl, cuts)];
    const count = 400;
    const reading = browser.run(
      async (ours, theirs, customer, count) => {
        async function read() {
          const found: { seq: number }[] = [];
          for await (const trade of client.live(client.trades({ baseUrl: ours }, customer), { after: 0 })) if (found.push(trade) === count) break;
          return found;
        }
        function listen() {
          const source = new EventSource(`${theirs}/v1/customers/${customer}/trades/live?after=0`);
          const found: { seq: number }[] = [];
          return new Promise<typeof found>((resolve) => {
            source.onmessage = ({ data }) => found.push(...JSON.parse(data).items) === count && (source.close(), resolve(found));
          });
        }
        return Promise.all([read(), listen()]);
      },
      ours.baseUrl,
      theirs.baseUrl,
      customer,
      count,
    );
    const history = trades(service, customer);
    const items = manyTrades(count);
    for (let first = 0; first < count; first += 4) await append(history, items.slice(first, first + 4));
    const stored = [];
    for await (const { customerId: _, ...trade } of all(history)) stored.push(trade);
    assert.equal(stored.length, count);
    for (const found of await reading) assert.deepEqual(found, stored);
    assert(ours.connections > 1 && theirs.connections > 1, `${ours.connections}, ${theirs.connections}`);
  });

  test("an abort has its reason there, and a deadline its key", async () => {
    const customer = await bundle();
    // Nothing listens on port 9.
    const ended = await browser.run(async (customer) => {
      const { append, NotAcknowledgedError, trades } = client;
      const send = (options: object) => append(trades({ baseUrl: "http://127.0.0.1:9" }, customer), [], options).catch((error) => error);
      const aborted = await send({ signal: AbortSignal.timeout(300) });
      const late = await send({ deadline: 300, key: "mine" });
      return [aborted.name, late instanceof NotAcknowledgedError, late.key];
    }, customer);
    assert.deepEqual(ended, ["TimeoutError", true, "mine"]);

    const stalled = await browser.run(async () => {
      const { all, trades } = client;
      const controller = new AbortController();
      const read = async (options: object) => {
        for await (const _ of all(trades({ baseUrl: "" }, 1), {}, options)) setTimeout(() => controller.abort("enough"), 200);
      };
      const late: Error = await read({ timeout: 500, resumes: 0 }).catch((error) => error);
      return [late.name, await read({ signal: controller.signal }).catch((error) => error)];
    });
    assert.deepEqual(stalled, ["TimeoutError", "enough"]);
  });

  test("the example lists, pages and appends trades", async () => {
    const history = trades(service, ++customers);
    await append(history, manyTrades(12));
    await browser.go(`${origin}/examples/frontend/?api=${service.baseUrl}&customer=${customers}`);
    const rows = "[...document.querySelectorAll('tbody tr')].map(row => row.cells[0].innerText).join()";
    const click = (name: string) => browser.value(`document.querySelector('button[name=${name}]').click()`);
    await browser.until(`${rows} == "12,11,10,9,8,7,6,5,4,3"`); // a window of ten, whatever is on the last page
    assert.equal(await browser.value("document.querySelector('button[name=prev]').disabled"), true);
    assert.equal(await browser.value("getComputedStyle(document.querySelector('table')).borderCollapse"), "collapse");
    await click("next");
    await browser.until(`${rows} == "2,1"`);
    await click("first");
    await browser.until(`${rows} == "12,11,10,9,8,7,6,5,4,3"`);

    const submit = (qty: number) =>
      browser.value(`{
        const { elements } = document.forms[0];
        elements.ticker.value = "AMD"; elements.qty.value = "${qty}"; elements.price.value = "15.54";
        document.forms[0].requestSubmit();
      }`);
    await submit(448);
    await browser.until(`document.querySelector("output").value == "Stored as number 13." && ${rows} == "13,12,11,10,9,8,7,6,5,4"`);
    assert.equal(await browser.value("document.querySelector('tbody tr').innerText.startsWith('13\\tbuy\\tAMD\\t448\\t15.54\\t2')"), true);
    await submit(-1);
    await browser.until(`document.querySelector("output").value.includes("/qty must be a whole number")`);

    // What was not answered when the page was left is sent when it comes back, and stored once.
    const pending = { key: "mine", trade: { type: "sell", ticker: "AMD", qty: 48 } };
    await append(history, pending.trade as TradeInput, { key: "mine" });
    await browser.value(`localStorage.unanswered = ${JSON.stringify(JSON.stringify(pending))}; location.reload()`);
    await browser.until(`document.querySelector("output").value == "Stored as number 14."`);
    let total;
    for await (const { totalItems } of pages(history)) total = totalItems;
    assert.equal(total, 14);
    assert.deepEqual(browser.uncaught, []);
  });
});
