// What a person sees and does in the explorer, with the real service and a real browser.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { createServer, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { suite, test } from "node:test";
import { gzipSync } from "node:zlib";
import type { Locator, Page } from "playwright-core";

import { violationsOf } from "./axe.js";
import { framesPanned } from "./frames.js";
import { eventually, root, skip, stage } from "./service.js";

const TRADES = 9367;
const TICKERS = ["ACME", "AMD", "MDB", "ZETA-A"];
/** A definition whose texts act where they are taken for more than texts. */
const HOSTILE = {
  history: "oddities",
  title: "Oddity",
  owner: { collection: "rooms", field: "roomId", type: "string" },
  pageSize: 10,
  maxItemBytes: 1000,
  date: "at",
  item: {
    type: "object",
    description: "<img src=x>&amp;\u202e\u0007",
    additionalProperties: false,
    properties: {
      note: { type: "string", description: "<b>note</b>\u202e", maxLength: 20, examples: ["<i>\u202e"] },
      kind: { type: "string", enum: ["<img src=x>", "\u202ex"] },
      at: { type: "string", format: "date-time", description: "\u2067when" },
    },
    examples: [{ note: "<i>\u202e", kind: "\u202ex", at: "2026-01-01T00:00:00Z" }],
  },
};

/** One of each kind. */
const VIEWS = [
  "/",
  "/explorer/customers",
  "/explorer/customers?_new=on",
  "/explorer/customers/42",
  "/explorer/customers/42/trades",
  "/explorer/customers/42/trades?page=3&order=asc",
  "/explorer/customers/42/trades?from=2024-01-01&to=2024-01-31&ticker=MDB",
  "/explorer/customers/42/trades/5",
  "/explorer/rooms/den/messages?_tab=append",
  "/explorer/customers/42/trades?_tab=chart",
  "/explorer/customers/42/trades?_tab=chart&_measure=price&_split=ticker",
  "/explorer/page-views",
];

/** What a view is about, once it is there. */
const CONTENT = "main :is(table, .plot canvas, dl.item, form.append, .cards, .top, .empty)";

/** From the narrowest to 4K. */
const SCREENS = [
  { width: 320, height: 700 },
  { width: 1280, height: 900 },
  { width: 3840, height: 2160 },
];

/** One every hour, from 2024 on. */
function manyTrades(count: number): object[] {
  return Array.from({ length: count }, (_, index) => ({
    type: index % 3 ? "buy" : "sell",
    ticker: TICKERS[index % 4],
    qty: 1 + (index % 900),
    price: (20 + (index % 77) / 4).toFixed(2),
    date: new Date(Date.UTC(2024, 0, 1) + index * 3_600_000).toISOString(),
  }));
}

const seqs = (page: Page) =>
  page.locator("table.items tbody tr").evaluateAll((rows) => rows.map((row) => Number(row.getAttribute("data-seq"))));
const range = (from: number, to: number) =>
  Array.from({ length: Math.abs(to - from) + 1 }, (_, index) => from + (from < to ? index : -index));
const isLive = (page: Page) => page.locator("[data-live=stream]").waitFor();

suite("the explorer", { skip }, () => {
  const { service, visitorOf, visit } = stage([HOSTILE], "--allow-erase", "--retain-pages", "trades=1000");
  let customers = 100;

  /** Customer 42 has many trades, from the first test on that asks for them: the very first needs an empty service. */
  let filling: Promise<void> | undefined;
  const fill = () => (filling ??= service.append("/v1/customers/42/trades", manyTrades(TRADES)).then(fillTooMany));
  /** Customer 43 has more full pages than are kept. */
  const fillTooMany = () => service.append("/v1/customers/43/trades", manyTrades(10_057));

  const trade = (qty: number) => ({ type: "buy", ticker: "MDB", qty, date: "2026-01-05T00:00:00Z" });

  test("an empty service offers a sample, and says how to append", visit(async (visitor) => {
    const page = await visitor.open("/");
    await page.getByRole("heading", { level: 1 }).waitFor();
    const section = page.locator("section", { has: page.getByRole("heading", { name: "Customers" }) });
    await section.getByText("In a shell").click();
    const commands = await section.locator("pre").innerText();
    assert.match(commands, new RegExp(`curl -sS .*\\n.*\\n.* '${service.baseUrl}/v1/customers/7/trades'`));
    assert.equal(await page.getByRole("button", { name: "Load sample messages" }).count(), 1);
    await section.getByRole("button", { name: "Load sample trades" }).dblclick();
    await page.waitForURL("**/explorer/customers/7/trades");
    await page.getByText("25 trades on 3 pages of 10").waitFor();
    await page.getByRole("link", { name: "pagebucket" }).click();
    await page.getByRole("button", { name: "Load sample executions" }).click();
    await page.getByText("1 execution on 1 page of 25").waitFor();
    await page.getByRole("cell", { name: "0.01250000" }).waitFor();
    await page.getByRole("link", { name: "pagebucket" }).click();
    await page.getByRole("link", { name: "25 trades of 7" }).waitFor();
    await page.getByRole("textbox", { name: "Open a customer by customerId" }).fill("7");
    await page.keyboard.press("Enter");
    await page.waitForURL("**/explorer/customers/7/trades");
  }));

  test("any page is reached by its number, by the slider, by keys, and by its address", visit(async (visitor) => {
    await fill();
    const page = await visitor.open("/explorer/customers/42/trades");
    await page.getByText("9,367 trades on 937 pages of 10").waitFor();
    await eventually(() => seqs(page), range(TRADES, 9358));
    await page.getByText("growing, 7 of 10").waitFor();

    const number = page.getByRole("spinbutton", { name: "Page", exact: true });
    await number.fill("500");
    await number.press("Enter");
    await eventually(() => seqs(page), range(5000, 4991));
    await page.getByText("final", { exact: true }).waitFor();
    await number.fill("937");
    await number.press("Enter");
    await eventually(() => seqs(page), range(TRADES, 9361));
    assert.equal(new URL(page.url()).search, "?page=937");

    await page.getByRole("heading", { level: 1 }).click();
    await page.keyboard.press("ArrowRight");
    await eventually(() => seqs(page), range(9360, 9351));
    await page.keyboard.press("ArrowLeft");
    await eventually(() => seqs(page), range(TRADES, 9361));
    await page.keyboard.press("End");
    await eventually(() => seqs(page), range(10, 1));
    await page.keyboard.press("Home");
    await eventually(() => seqs(page), range(TRADES, 9358));

    const slider = page.getByRole("slider");
    await slider.focus();
    await slider.press("End");
    await eventually(() => seqs(page), range(10, 1));
    await page.getByRole("combobox", { name: "Order" }).selectOption("asc");
    await eventually(() => seqs(page), range(1, 10));
    await page.getByRole("button", { name: "Next: newer" }).click();
    await eventually(() => seqs(page), range(11, 20));
    const address = page.url();
    const took = await page.evaluate(async () => {
      const [begun, before] = [performance.now(), document.querySelector("tr[data-seq]")];
      document.querySelector<HTMLButtonElement>("button[aria-label^=Next]")!.click();
      while (document.querySelector("tr[data-seq]") === before) await new Promise(requestAnimationFrame);
      return performance.now() - begun;
    });
    console.log(`another page is shown ${took.toFixed(0)} ms after the click`);
    await page.goBack();
    await eventually(() => seqs(page), range(11, 20));
    await page.goBack();
    await eventually(() => seqs(page), range(1, 10));
    await page.goto(address);
    await eventually(() => seqs(page), range(11, 20));
  }));

  test("a full page that was seen before costs no request", visit(async (visitor) => {
    await fill();
    const page = await visitor.open("/explorer/customers/42/trades?page=400");
    await eventually(() => seqs(page), range(4000, 3991));
    await page.reload();
    await eventually(() => seqs(page), range(4000, 3991));
    await page.locator(".requests summary").click();
    const row = page.locator(".requests tr", { hasText: "/pages/400" });
    await row.getByText("browser's cache").waitFor();
    const first = page.locator(".requests tr", { hasText: "GET /v1/customers/42" }).last();
    await first.getByText("db;dur=").waitFor();
  }));

  test("a span, filters, and one item by its number", visit(async (visitor) => {
    await fill();
    const page = await visitor.open("/explorer/customers/42/trades?order=asc");
    await page.getByLabel("from (UTC)").fill("2024-02-01");
    await page.getByLabel("to (UTC)").fill("2024-02-02");
    await page.getByRole("textbox", { name: "ticker" }).fill("ACME, MDB");
    await page.getByRole("combobox", { name: "type" }).selectOption("sell");
    await page.getByRole("button", { name: "Show", exact: true }).click();
    const chosen = await service.get(
      "/v1/customers/42/trades?from=2024-02-01T00:00:00Z&to=2024-02-03T00:00:00Z&ticker=ACME&ticker=MDB&type=sell&limit=100",
    );
    assert.ok(chosen.items.length > 5);
    await eventually(
      () => seqs(page),
      chosen.items.map(({ seq }: { seq: number }) => seq),
    );
    await page.reload();
    await eventually(
      () => seqs(page),
      chosen.items.map(({ seq }: { seq: number }) => seq),
    );
    await page.getByRole("link", { name: "Show all" }).click();
    await page.getByText("growing").waitFor();

    const jump = page.getByRole("spinbutton", { name: "Open the item with this number" });
    await jump.fill("4321");
    await jump.press("Enter");
    await page.getByRole("heading", { name: "Trade 4,321" }).waitFor();
    assert.equal(new URL(page.url()).pathname, "/explorer/customers/42/trades/4321");
    await page.getByText("2024-06-29 00:00:00").waitFor();
    await page.keyboard.press("ArrowRight");
    await page.getByRole("heading", { name: "Trade 4,322" }).waitFor();
    await page.getByRole("link", { name: "Page 433" }).click();
    await eventually(() => seqs(page), range(4321, 4330));
    // What is no number is no request: of a live stream there would be no end.
    const asked: string[] = [];
    page.on("request", (request) => asked.push(new URL(request.url()).pathname));
    await page.goto(`${service.baseUrl}/explorer/customers/42/trades/live`);
    await page.getByRole("alert").getByText("a whole number from 1 on").waitFor();
    assert.deepEqual(asked.filter((path) => path.startsWith("/v1")), []);
  }));

  test("items of another tab arrive live, wait for a reader who is elsewhere, and none is missing after a pause", visit(async (visitor) => {
    const path = `/v1/customers/${++customers}/trades`;
    await service.append(
      path,
      Array.from({ length: 25 }, (_, index) => trade(index + 1)),
    );
    const page = await visitor.open(`/explorer/customers/${customers}/trades`);
    const other = await visitor.open(`/explorer/customers/${customers}/trades?_tab=append`);
    await isLive(page);
    await eventually(() => seqs(page), range(25, 16));
    await fillTrade(other, "26");
    await other.getByRole("button", { name: "Append", exact: true }).click();
    await other.getByRole("link", { name: "number 26" }).waitFor();
    await eventually(() => seqs(page), range(26, 16));
    assert.equal(await page.locator("tr.new").count(), 1, "it is marked");
    await page.getByText("26 trades on 3 pages").waitFor();

    // Over the end of the page: what is read stays.
    await service.append(path, range(27, 33).map(trade));
    await eventually(() => seqs(page), range(33, 16));

    // The other way round it sticks to the end below, wherever the end is.
    const upwards = await visitor.open(`/explorer/customers/${customers}/trades?order=asc`);
    await isLive(upwards);
    await eventually(() => seqs(upwards), range(24, 33));
    await upwards.setViewportSize({ width: 1280, height: 400 });
    await upwards.evaluate(() => scrollTo({ top: 10_000 }));
    await service.append(path, [trade(34), trade(35)]);
    await eventually(() => seqs(upwards), range(24, 35));
    await eventually(() => upwards.locator("[data-seq='35']").evaluate((row) => row.getBoundingClientRect().top < innerHeight), true);
    await upwards.close();
    await eventually(() => seqs(page), range(35, 16));

    const full = await visitor.open(`/explorer/customers/${customers}/trades?page=1`);
    await isLive(full);
    await eventually(() => seqs(full), range(10, 1));
    await page.setViewportSize({ width: 1280, height: 400 });
    await page.evaluate(() => scrollTo({ top: 10_000 }));
    const at = await page.locator("[data-seq='22']").boundingBox();
    await service.append(path, [trade(36), trade(37)]);
    await page.getByText("37 trades on 4 pages").waitFor();
    await page.getByRole("button", { name: "2 new" }).waitFor({ state: "attached" });
    assert.deepEqual(await seqs(page), range(35, 16));
    assert.ok(Math.abs((await page.locator("[data-seq='22']").boundingBox())!.y - at!.y) < 60, "nothing has moved what is read");
    await page.getByRole("button", { name: "2 new" }).click();
    await eventually(() => seqs(page), range(37, 16));
    assert.deepEqual(await seqs(full), range(10, 1), "a full page stays as it is");

    const live = page.getByRole("switch", { name: "Live" });
    await live.click();
    await page.locator("[data-live=off]").waitFor();
    assert.match(page.url(), /_live=off/);
    await service.append(path, range(38, 41).map(trade));
    await full.getByText("41 trades").waitFor();
    assert.deepEqual(await seqs(page), range(37, 16));
    await live.click();
    await eventually(() => seqs(page), range(41, 16));

    // A tab that is not seen has no stream, and misses nothing.
    const seen = (hidden: boolean) =>
      page.evaluate((hidden) => {
        Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
        document.dispatchEvent(new Event("visibilitychange"));
      }, hidden);
    const ended = page.waitForEvent("requestfailed", (request) => request.url().includes("/live"));
    await seen(true);
    await ended;
    assert.equal(await page.locator("[data-live]").getAttribute("data-live"), "off");
    await service.append(path, [trade(42)]);
    await full.getByText("42 trades").waitFor();
    assert.deepEqual(await seqs(page), range(41, 16));
    await seen(false);
    await eventually(() => seqs(page), range(42, 16));

    await visitor.context.setOffline(true);
    await page.locator("[data-live=waiting]").waitFor();
    await service.append(path, [trade(43)]);
    await visitor.context.setOffline(false);
    await eventually(() => seqs(page), range(43, 16));

    // More than a page can hold: it shows the newest page.
    await service.append(path, range(44, 3004).map(trade));
    await page.getByText("3,004 trades on 301 pages").waitFor();
    await eventually(async () => (await seqs(page))[0], 3004);
    const left = await seqs(page);
    assert.deepEqual(left, range(3004, left.at(-1)!));
  }));

  test("what has come live is shown once, whatever page or selection is chosen then", visit(async (visitor) => {
    const path = `/v1/customers/${++customers}/trades`;
    await service.append(path, range(1, 7).map(trade));
    const page = await visitor.open(`/explorer/customers/${customers}/trades`);
    await isLive(page);
    await service.append(path, range(8, 67).map(trade));
    await eventually(() => seqs(page), range(67, 1));
    const number = page.getByRole("spinbutton", { name: "Page", exact: true });
    await number.fill("1");
    await number.press("Enter");
    await page.getByText("final", { exact: true }).waitFor();
    await eventually(() => seqs(page), range(10, 1));

    // A selection is read a window at a time, and what was before it is not new.
    await page.getByRole("textbox", { name: "ticker" }).fill("MDB");
    await page.getByRole("textbox", { name: "ticker" }).press("Enter");
    await page.getByText("50 trades, numbers 18 to 67").waitFor();
    await eventually(() => seqs(page), range(67, 18));
    assert.equal(await page.locator("tr.new").count(), 0);
    assert.equal(await page.getByRole("textbox", { name: "ticker" }).evaluate((field) => field === document.activeElement), true, "the focus stays");
    // The newest window again, by another address.
    await page.getByRole("button", { name: "Next: older" }).click();
    await eventually(() => seqs(page), range(17, 1));
    await page.getByRole("button", { name: "Previous: newer" }).click();
    await eventually(() => seqs(page), range(67, 18));
    await service.append(path, [trade(68)]);
    await eventually(() => seqs(page), range(68, 18));

    // More than are kept, of which none is chosen: the chosen one before them is not lost.
    await page.goto(`${service.baseUrl}/explorer/customers/${customers}/trades?ticker=RARE`);
    await isLive(page);
    const others = range(1, 1500).map(trade);
    await service.append(path, [{ ...trade(69), ticker: "RARE" }, ...others]);
    await page.getByText("1,569 trades on 157 pages").waitFor();
    await eventually(() => seqs(page), [69]);
  }));

  test("a form has the faults beside its fields, and a double click stores once", visit(async (visitor) => {
    const path = `/v1/customers/${++customers}/trades`;
    const page = await visitor.open(`/explorer/customers/${customers}/trades?_tab=append`);
    await fillTrade(page, "1.5");
    await page.getByRole("textbox", { name: "price" }).fill("free");
    const button = page.getByRole("button", { name: "Append", exact: true });
    await button.click();
    const faultOf = (field: Locator) => field.evaluate((input) => document.getElementById(`${input.id}:fault`)?.textContent);
    await eventually(
      () => faultOf(page.getByRole("textbox", { name: "qty" })),
      "must be a whole number from 1 to 9007199254740991, written without a fraction or an exponent",
    );
    assert.match((await faultOf(page.getByRole("textbox", { name: "price" })))!, /decimal/);
    assert.equal(await page.getByRole("textbox", { name: "qty" }).evaluate((field) => document.activeElement === field), true);
    await page.getByRole("textbox", { name: "price" }).fill("10.25");
    await page.getByRole("textbox", { name: "qty" }).fill("3");
    await button.dblclick();
    await page.getByRole("link", { name: "number 1" }).waitFor();
    assert.equal((await service.get(path)).totalItems, 1);
    await eventually(() => page.evaluate(() => document.activeElement?.textContent), "Append another");

    // The answer is lost with the page: the same request is sent again.
    await page.getByRole("button", { name: "Append another" }).click();
    await fillTrade(page, "4");
    await page.route("**/trades", async (route) => {
      await route.fetch();
      await route.abort();
    });
    await button.click();
    await eventually(async () => (await service.get(path)).totalItems, 2);
    await page.unrouteAll({ behavior: "ignoreErrors" });
    await page.reload();
    await page.getByText("its answer was not seen").waitFor();
    assert.equal(await page.getByRole("textbox", { name: "qty" }).inputValue(), "4");
    await page.getByRole("button", { name: "Send it again" }).click();
    await page.getByRole("link", { name: "number 2" }).waitFor();
    assert.equal((await service.get(path)).totalItems, 2);
  }));

  test("a form of nested items, and a table of them", visit(async (visitor) => {
    const page = await visitor.open("/explorer/rooms/den/messages?_tab=append");
    await page.getByRole("button", { name: "Add to attachments" }).click();
    await page.getByRole("textbox", { name: "text" }).fill("see");
    await page.getByRole("textbox", { name: "bytes" }).fill("many");
    await page.getByRole("button", { name: "Append", exact: true }).click();
    await eventually(() => page.locator(".fault").allInnerTexts(), ["is required", "is required", "must be a number, not a string"]);
    await page.getByRole("textbox", { name: "author" }).fill("ann");
    await page.getByRole("textbox", { name: "url" }).fill("https://example.org/plan.pdf");
    await page.getByRole("textbox", { name: "bytes" }).fill("48213");
    await page.getByRole("button", { name: "Append", exact: true }).click();
    await page.getByRole("link", { name: "number 1" }).click();
    const { items } = await service.get("/v1/rooms/den/messages");
    assert.deepEqual(items[0].attachments, [{ url: "https://example.org/plan.pdf", bytes: 48213 }]);
    await page.getByText("https://example.org/plan.pdf").first().waitFor();
  }));

  test("a download is the export, and what is shown is a part of it", visit(async (visitor) => {
    await fill();
    const page = await visitor.open("/explorer/customers/42/trades?page=3&order=asc");
    await eventually(() => seqs(page), range(21, 30));
    await page.getByText("Download").click();
    for (const format of ["csv", "ndjson"]) {
      const response = await fetch(`${service.baseUrl}/v1/customers/42/trades/export.${format}`);
      const whole = await response.text();
      const row = page.locator(".sheet .row", { hasText: format.toUpperCase() });
      assert.equal(await saved(page, row.getByRole("link", { name: "all" })), whole);
      const shown = await saved(page, row.getByRole("button", { name: "what is shown" }));
      const end = format === "csv" ? "\r\n" : "\n";
      const lines = whole.split(end);
      const begin = format === "csv" ? 21 : 20;
      assert.equal(shown, [...(format === "csv" ? [lines[0]] : []), ...lines.slice(begin, begin + 10), ""].join(end));
    }
    // A text that is empty, and one that is absent.
    await service.append("/v1/rooms/cellar/oddities", [{ note: "", at: "2026-01-01T00:00:00Z" }, { at: "2026-01-01T00:00:00Z" }]);
    await page.goto(`${service.baseUrl}/explorer/rooms/cellar/oddities?order=asc`);
    await eventually(() => seqs(page), [1, 2]);
    await page.getByText("Download").click();
    const row = page.locator(".sheet .row", { hasText: "CSV" });
    const whole = await saved(page, row.getByRole("link", { name: "all" }));
    assert.equal(await saved(page, row.getByRole("button", { name: "what is shown" })), whole);
  }));

  test("of the real transactions, too, any page is shown, and all of them are downloaded", visit(async (visitor) => {
    const [customer, file] = [++customers, process.env["PAGEBUCKET_TRANSACTIONS"] ?? join(root, "../shared/data/transactions_2004_2009.csv")];
    const path = `/v1/customers/${customer}/trades`;
    // Elsewhere there is no such file.
    if (existsSync(file)) service.command("import", file, "--history", "trades", "--customer", String(customer));
    else await service.append(path, manyTrades(TRADES));
    const page = await visitor.open(`/explorer/customers/${customer}/trades?order=asc&page=1`);
    await page.getByText("9,367 trades on 937 pages of 10").waitFor();
    const number = page.getByRole("spinbutton", { name: "Page", exact: true });
    await number.fill("937");
    await number.press("Enter");
    await eventually(() => seqs(page), range(9361, TRADES));
    const { items } = await service.get(`${path}/pages/937`);
    const cells = (name: string) => page.locator(`td[data-name=${name}]`).allInnerTexts();
    assert.deepEqual(await cells("ticker"), items.map(({ ticker }: { ticker: string }) => ticker));
    assert.deepEqual(await cells("price"), items.map(({ price }: { price: string }) => price));
    await page.getByText("Download").click();
    const row = page.locator(".sheet .row", { hasText: "CSV" });
    const whole = await (await fetch(`${service.baseUrl}${path}/export.csv`)).text();
    assert.equal(await saved(page, row.getByRole("link", { name: "all" })), whole);
    assert.equal(whole.split("\r\n").length, 1 + TRADES + 1);
  }));

  test("each view says by commands for a shell what it has asked for", visit(async (visitor) => {
    await fill();
    for (const path of VIEWS) {
      const page = await visitor.open("/problems");
      const asked = new Set<string>();
      page.on("request", (request) => {
        const { pathname } = new URL(request.url());
        if (request.resourceType() === "fetch" && (pathname.startsWith("/v1") || path === "/")) asked.add(request.url());
      });
      await page.goto(service.baseUrl + path);
      // By now a view knows all that it asks for.
      await page.locator("main :is(.facts, .card, table)").first().waitFor();
      await page.getByText("Copy as curl").click();
      const commands = async () => [...(await page.locator(".sheet code").innerText()).matchAll(/^(?:# )?curl -sS([^]*?) +'(http[^']*)'$/gm)];
      const read = async () => (await commands()).filter(([, options]) => !options!.includes("-d ")).map(([, , url]) => url!);
      await eventually(async () => (await read()).filter((url) => !asked.has(url)), []);
      // A chart of many points follows links.
      await eventually(async () => path.includes("_tab=chart") || (await read()).sort().join() === [...asked].sort().join(), true);
      const [first] = await commands();
      assert.ok(first, path);
      if (path.includes("page=3")) assert.equal(execFileSync("bash", ["-c", first[0]], { encoding: "utf8" }), await (await fetch(first[2]!)).text());
      await page.close();
    }
  }));

  test("nothing is polled where a live stream tells of it", visit(async (visitor) => {
    const path = `/v1/customers/${++customers}/trades`;
    await service.append(path, [trade(1)]);
    const page = await visitor.open("/problems");
    await page.clock.install();
    await page.goto(`${service.baseUrl}/explorer/customers/${customers}/trades`);
    await isLive(page);
    const asked: string[] = [];
    page.on("request", (request) => asked.push(new URL(request.url()).pathname));
    for (let qty = 2; qty <= 4; qty++) {
      await service.append(path, [trade(qty)]);
      await eventually(() => seqs(page), range(qty, 1));
      // Less than the time after which a stream that says nothing counts as broken.
      await page.clock.runFor(20_000);
    }
    assert.deepEqual(asked, []);
  }));

  test("menus, downloads and the form are used by keyboard alone", visit(async (visitor) => {
    await fill();
    const page = await visitor.open("/explorer/customers/42/trades?page=3&order=asc");
    await eventually(() => seqs(page), range(21, 30));
    const focused = () => page.evaluate(() => document.activeElement?.textContent?.trim());
    /** Walks to what has this text, as a person does who has no pointer. */
    const tabTo = async (text: string) => {
      for (let steps = 0; (await focused()) !== text; steps++) {
        assert.ok(steps < 100, `${text} has the focus`);
        await page.keyboard.press("Tab");
      }
    };
    await tabTo("Download");
    await page.keyboard.press("Enter");
    await tabTo("what is shown");
    const [download] = await Promise.all([page.waitForEvent("download"), page.keyboard.press("Enter")]);
    assert.equal(readFileSync(await download.path(), "utf8").split("\r\n").length, 12);
    await page.keyboard.press("Escape");
    assert.equal(await focused(), "Download");
    assert.equal(await page.locator("details.menu[open]").count(), 0);
    await tabTo("Copy as curl");
    await page.keyboard.press("Enter");
    await page.locator(".sheet code", { hasText: "/pages/3" }).waitFor();

    const path = `/v1/customers/${++customers}/trades`;
    await page.goto(`${service.baseUrl}/explorer/customers/${customers}/trades`);
    await page.getByText("There are no trades yet.").waitFor();
    await tabTo("Append the first");
    await page.keyboard.press("Enter");
    await page.getByRole("combobox", { name: "type" }).waitFor();
    for (let steps = 0; !(await page.getByRole("combobox", { name: "type" }).evaluate((field) => field === document.activeElement)); steps++) {
      assert.ok(steps < 100, "the form has the focus");
      await page.keyboard.press("Tab");
    }
    await page.keyboard.type("s");
    await page.keyboard.press("Tab");
    await page.keyboard.type("MDB");
    await page.keyboard.press("Tab");
    await page.keyboard.type("7");
    await page.keyboard.press("Enter");
    await page.getByRole("link", { name: "number 1" }).waitFor();
    const { items } = await service.get(path);
    assert.deepEqual([items[0].type, items[0].ticker, items[0].qty], ["sell", "MDB", 7]);
  }));

  test("charts say what they are made of, and lead to their items", visit(async (visitor) => {
    await fill();
    const page = await visitor.open("/explorer/customers/42/trades?_tab=chart&_measure=qty");
    await page.getByText("1,000 of 9,367 trades", { exact: true }).waitFor();
    await page.getByRole("application").focus();
    await page.keyboard.press("ArrowRight");
    await page.locator("output", { hasText: "qty 268, number 8,368" }).waitFor();
    await page.getByRole("combobox", { name: "Show" }).selectOption("price");
    await page.getByRole("combobox", { name: "by" }).selectOption("ticker");
    await eventually(async () => (await page.locator(".legend > span").allInnerTexts()).toSorted(), TICKERS);
    const plot = page.getByRole("application");
    await plot.focus();
    await page.keyboard.press("ArrowLeft");
    await page.locator("output", { hasText: "MDB, price" }).waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Trade 9,367" }).waitFor();
    await page.goBack();
    await page.locator(".u-over").click({ position: { x: 300, y: 150 } });
    await page.waitForURL("**/explorer/customers/42/trades/*");
    await page.goBack();
    await page.getByLabel("from (UTC)").fill("2024-02-01");
    await page.getByLabel("to (UTC)").fill("2024-02-02");
    await page.getByRole("button", { name: "Show", exact: true }).click();
    await page.getByText("all 48 trades of this selection").waitFor();
    await page.getByRole("link", { name: "Show all" }).click();
    await page.getByRole("combobox", { name: "of at most" }).selectOption("10000");
    await page.getByText("9,367 of 9,367 trades", { exact: true }).waitFor();
    console.log(`${TRADES} points pan at ${await framesPanned(page)} frames/s`);
  }));

  test("a history without summaries has charts of what is loaded, per hour, day or month", visit(async (visitor) => {
    const sent = ["2026-01-30T10:05:00Z", "2026-01-30T10:55:00Z", "2026-01-30T11:00:00Z", "2026-01-31T00:00:00Z", "2026-02-01T00:00:00Z"];
    await service.append(
      "/v1/rooms/hall/messages",
      sent.map((sentAt) => ({ author: "ann", text: "hello", sentAt })),
    );
    const page = await visitor.open("/explorer/rooms/hall/messages?_tab=chart");
    for (const [unit, words] of [
      ["hour", "2026-01-30 10:00: 2 messages"],
      ["day", "2026-01-30: 3 messages"],
      ["month", "2026-01: 4 messages"],
    ]) {
      await page.getByRole("combobox", { name: "per" }).selectOption(unit!);
      await page.getByRole("application", { name: `per ${unit}. 5 of 5 messages.` }).focus();
      await page.keyboard.press("ArrowRight");
      await page.locator("output", { hasText: words! }).waitFor();
    }
  }));

  test(
    "charts of summaries are of the whole history, in the zone of the browser, and lead to the items of a point",
    visit(async (visitor) => {
      await fill();
      const page = await visitor.open("/explorer/customers/42/trades?_tab=chart");
      const plot = page.getByRole("application", { name: "Trades per day, Europe/Berlin. all 9,367 trades." });
      await page.getByText("all 9,367 trades", { exact: true }).waitFor();
      const summaryOf = (query: string) => service.get(`/v1/customers/42/trades/summary?limit=1000&tz=Europe/Berlin&${query}`);
      const last = (await summaryOf("by=1d")).points.at(-1);
      await plot.focus();
      await page.keyboard.press("ArrowLeft");
      await page.locator("output", { hasText: `2025-01-25: ${last.count} trades` }).waitFor();
      await page.keyboard.press("Enter");
      await eventually(() => seqs(page), range(last.firstSeq, last.lastSeq));
      await page.goBack();

      // What a single answer does not have: it is asked for by the links.
      await page.getByRole("combobox", { name: "per" }).selectOption("1h");
      await page.getByText("all 9,367 trades", { exact: true }).waitFor();
      await page.locator(".requests summary").click();
      assert.equal(await page.locator(".requests tr", { hasText: "/summary?by=1h" }).count(), 10);
      await page.getByRole("combobox", { name: "Time zone" }).selectOption("UTC");
      await page.waitForURL((address) => address.searchParams.get("tz") === "UTC");
      await page.getByRole("application", { name: "Trades per hour, UTC" }).waitFor();

      await page.goto(`${service.baseUrl}/explorer/customers/42/trades?_tab=chart&by=1M&group=ticker`);
      await eventually(async () => (await page.locator(".legend > span").allInnerTexts()).toSorted(), TICKERS);
      await page.getByRole("combobox", { name: "Show" }).selectOption("sum:qty");
      const months = (await summaryOf("by=1M&group=ticker")).points;
      const { values, count } = months[0];
      await page.getByRole("application", { name: "sum of qty per month by ticker" }).focus();
      await page.keyboard.press("ArrowRight");
      await page.locator("output", { hasText: `2024-01: ACME, sum of qty ${values.qty.sum}; ${count} trades` }).waitFor();
      const [second] = (await page.locator(".legend > span").allInnerTexts()).slice(1);
      await page.keyboard.press("ArrowDown");
      await page.locator("output", { hasText: `2024-01: ${second}, sum of qty` }).waitFor();
      await page.keyboard.press("ArrowRight");
      await page.locator("output", { hasText: `2024-02: ${second}, sum of qty` }).waitFor();
      const show = page.getByRole("combobox", { name: "Show" });
      await show.focus();
      await show.selectOption("price");
      await page.getByRole("application", { name: "price. 1,000 of 9,367 trades" }).waitFor();
      assert.equal(await show.evaluate((field) => field === document.activeElement), true, "the focus stays");
      await show.selectOption("ohlc:price");
      await page.getByRole("application", { name: "price as candles per month by ticker" }).focus();
      await page.keyboard.press("ArrowRight");
      const { open, high, low, close } = values.price;
      await page.locator("output", { hasText: `open ${open}, high ${high}, low ${low}, close ${close}; ${count} trades` }).waitFor();
      await eventually(() => page.evaluate(drawnColours, 4), true);
      await page.keyboard.press("Enter");
      await page.getByText(`numbers ${months[0].firstSeq} to`).waitFor();
      assert.deepEqual((await seqs(page)).slice(0, 2), [1, 5]);
      await page.getByText("Copy as curl").click();
      assert.match(await page.locator(".sheet code").innerText(), /ticker=ACME/);

      // A selection, and what is appended while it is looked at.
      await page.goto(`${service.baseUrl}/explorer/customers/42/trades?_tab=chart&ticker=MDB&from=2024-03-01&to=2024-03-02`);
      await page.getByText(/^all \d+ trades of this selection, in whole spans$/).waitFor();
      const path = `/v1/customers/${++customers}/trades`;
      await service.append(path, [trade(1), trade(2)]);
      await page.goto(`${service.baseUrl}/explorer/customers/${customers}/trades?_tab=chart`);
      await page.getByText("all 2 trades", { exact: true }).waitFor();
      await isLive(page);
      await service.append(path, [trade(3)]);
      await page.getByRole("button", { name: "1 new: draw again" }).click();
      await page.getByText("all 3 trades", { exact: true }).waitFor();
    }, { timezoneId: "Europe/Berlin" }),
  );

  test(
    "a touch opens the point that it is on",
    visit(async (visitor) => {
      const path = `/v1/customers/${++customers}/trades`;
      await service.append(path, [trade(1), trade(2), { ...trade(3), date: "2026-02-05T00:00:00Z" }]);
      for (const [side, seqsThere] of [
        [0.1, [1, 2]],
        [0.9, [3]],
      ] as const) {
        const page = await visitor.open(`/explorer/customers/${customers}/trades?_tab=chart&by=1M`);
        const { x, y, width, height } = (await page.locator(".u-over").boundingBox())!;
        await page.touchscreen.tap(x + width * side, y + height - 10);
        await eventually(() => seqs(page), [...seqsThere]);
        await page.close();
      }
    }, { hasTouch: true }),
  );

  test("page views have a series and a list of the most viewed", visit(async (visitor) => {
    const views = [
      { path: "/index.htm", at: "2026-01-01T10:01:02Z", views: 14 },
      { path: "/index.htm", at: "2026-01-01T10:07:14Z", views: 3 },
      { path: "/<img src=x onerror=alert(1)>", at: "2026-01-01T10:01:14Z", views: 5 },
    ];
    const response = await fetch(`${service.baseUrl}/v1/page-views/batch`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(views),
    });
    assert.equal(response.status, 204);
    const page = await visitor.open("/explorer/page-views?from=2026-01-01&to=2026-01-01");
    await eventually(() => page.locator("ol.top li").allInnerTexts(), ["/index.htm\n17", "/<img src=x onerror=alert(1)>\n5"]);
    await page.getByRole("link", { name: "/index.htm" }).click();
    await page.getByText("; the busiest minute was 2026-01-01 10:01:00 with 14").waitFor();
    await page.getByText("all 17 views from 2026-01-01 00:00:00 to 2026-01-02 00:00:00").waitFor();
    await page.goto(`${page.url().replace(/from=.*/, "")}from=2026-01-01T10:00:00Z&to=2026-01-01T11:00:00Z`);
    assert.deepEqual(await Promise.all(["from", "to"].map((end) => page.getByLabel(`${end}: the time of the day`).inputValue())), ["10:00:00", "11:00:00"]);
    for (const [resolution, busiest] of [
      ["second", "2026-01-01 10:01:02 with 14"],
      ["hour", "2026-01-01 10:00:00 with 17"],
      ["day", "2026-01-01 00:00:00 with 17"],
    ]) {
      await page.getByRole("combobox", { name: "by" }).selectOption(resolution!);
      await page.getByRole("button", { name: "Show", exact: true }).click();
      await page.getByText(`; the busiest ${resolution} was ${busiest}`).waitFor();
      await page.getByRole("application", { name: `Views of /index.htm by ${resolution}` }).waitFor();
    }
  }));

  test("markup, control characters and turns of direction are shown as text", visit(async (visitor) => {
    const text = '<img src=x onerror="document.title=`owned`">&amp;\u202etxt.exe\u0007';
    await service.append("/v1/rooms/attic/messages", [{ author: "<b>ann</b>", text }]);
    for (const path of ["", "/1", "?_tab=chart&_measure=&_split=author"]) {
      const page = await visitor.open(`/explorer/rooms/attic/messages${path}`);
      await page.locator(CONTENT).first().waitFor();
      if (!path.startsWith("?")) await page.getByText("<b>ann</b>").first().waitFor();
      assert.equal(await page.locator("main img, main b").count(), 0);
      assert.equal((await page.locator("main").innerText()).includes("\u202e"), false);
      await page.close();
    }
    const page = await visitor.open("/explorer/rooms/attic/messages");
    const cell = await page.locator("td[data-name=text]").innerText();
    assert.equal(cell.replace(/\s/g, ""), '<imgsrc=xonerror="document.title=`owned`">&amp;U+202Etxt.exeU+0007');
    // What a definition says is a text of others, too.
    await page.goto(`${service.baseUrl}/`);
    await page.getByText("<img src=x>&amp;").first().waitFor();
    await service.append("/v1/rooms/attic/oddities", [HOSTILE.item.examples[0]!, { note: "", at: "2026-01-02T00:00:00Z" }]);
    for (const tab of ["", "?_tab=chart", "?_tab=append"]) {
      await page.goto(`${service.baseUrl}/explorer/rooms/attic/oddities${tab}`);
      await page.locator(CONTENT).first().waitFor();
      if (tab === "?_tab=append") await page.locator(".hint", { hasText: "<b>note</b>" }).waitFor();
      assert.equal(await page.locator("main img, main b").count(), 0);
      assert.equal((await page.locator("body").innerText()).includes("\u202e"), false, tab);
      const hints = await page.locator("input").evaluateAll((fields) => fields.map((field) => field.getAttribute("placeholder")));
      assert.equal(hints.join().includes("\u202e"), false, tab);
    }
    for (const path of [
      "/explorer/%3Cimg%20src=x%3E",
      "/explorer/customers/%3Cimg%20src=x%3E/trades",
      "/explorer/customers/7/%E2%80%AEx",
    ]) {
      await page.goto(service.baseUrl + path);
      await page.getByRole("alert").first().waitFor();
      assert.equal(await page.locator("main img").count(), 0);
      assert.equal((await page.title()).includes("\u202e"), false);
    }
  }));

  test("deleted histories say so, and where they begin", visit(async (visitor) => {
    await fill();
    await service.append("/v1/customers/66/trades", [trade(1)]);
    const page = await visitor.open("/explorer/customers/66/trades");
    await isLive(page);
    assert.ok((await fetch(`${service.baseUrl}/v1/customers/66`, { method: "DELETE" })).ok);
    const erased = page.getByRole("status").getByText(/^Erased on /);
    await erased.waitFor();
    assert.equal(await page.locator("table.items").count(), 0);
    await page.reload();
    await erased.waitFor();
    await eventually(async () => (await service.get("/v1/customers/43")).trades.firstPage, 6);
    await page.goto(`${service.baseUrl}/explorer/customers/43/trades?page=1`);
    await page.getByText("begins with page 6, number 51: what was before is deleted").waitFor();
    await page.getByText("This history begins with page 6, at number 51.").waitFor();
    await page.getByRole("link", { name: "page 6", exact: true }).click();
    await eventually(() => seqs(page), range(60, 51));
    await page.goto(`${service.baseUrl}/explorer/customers/43/trades?_tab=chart`);
    await page.getByText("all 10,007 trades from number 51 on", { exact: true }).waitFor();
    await page.goto(`${service.baseUrl}/explorer/customers?_id=43`);
    await page.getByText("begins with number 51 of 2024-01-03 02:00:00: what was before is deleted").waitFor();
  }));

  test("it is right for assistive technology, in light and dark, on wide and narrow screens", visit(async (visitor) => {
    await fill();
    const page = await visitor.open("/");
    for (const path of VIEWS) {
      await page.goto(service.baseUrl + path);
      await page.locator(CONTENT).first().waitFor();
      await page.waitForFunction(() => !document.querySelector("main .loading"));
      for (const screen of SCREENS) {
        await page.setViewportSize(screen);
        for (const colorScheme of ["light", "dark"] as const) {
          await page.emulateMedia({ colorScheme });
          assert.deepEqual(await violationsOf(page), [], `${path}, ${screen.width}, ${colorScheme}`);
        }
        assert.equal(
          await page.evaluate(() => document.documentElement.scrollWidth > innerWidth),
          false,
          `${path} is not wider than ${screen.width}`,
        );
      }
    }
  }));

  test(
    "a sentence and links without scripts",
    visit(async (visitor) => {
      const page = await visitor.open("/explorer/customers/7/trades");
      await page.getByText("a page is a bucket").waitFor();
      await page.getByRole("link", { name: "Errors" }).click();
      assert.equal(new URL(page.url()).pathname, "/problems");
    }, { javaScriptEnabled: false }),
  );

  test("it works below a path of a proxy", async (test) => {
    await fill();
    const proxy = await pathProxy(service.baseUrl, "/kept/here");
    // Also after a failure: otherwise the tests would not end.
    test.after(() => {
      proxy.close();
      proxy.closeAllConnections();
    });
    const visitor = await visitorOf(`http://127.0.0.1:${(proxy.address() as AddressInfo).port}`);
    const page = await visitor.open("/kept/here/explorer/customers/42/trades?page=2&order=asc");
    await eventually(() => seqs(page), range(11, 20));
    await page.getByRole("link", { name: "customers" }).click();
    await page.getByRole("link", { name: "9,367 trades of 42" }).click();
    await isLive(page);
    assert.equal(new URL(page.url()).pathname, "/kept/here/explorer/customers/42/trades");
    await page.getByRole("link", { name: "pagebucket" }).click();
    await page.getByRole("link", { name: "9,367 trades of 42" }).waitFor();
    const icon = await page.locator("link[rel=icon]").evaluate((link) => (link as HTMLLinkElement).href);
    assert.equal(icon, `${visitor.baseUrl}/kept/here/icon.svg`, "wherever the reader is");
    await page.getByRole("link", { name: "API", exact: true }).click();
    for (const part of [".opblock-summary-control", ".try-out__btn", ".execute"])
      await page.locator(`#operations-Probes-livez ${part}`).click();
    await page.locator("#operations-Probes-livez .live-responses-table .response-col_status", { hasText: "200" }).waitFor();
    await page.getByRole("link", { name: "pagebucket" }).click();
    await page.getByRole("link", { name: "9,367 trades of 42" }).waitFor();
    await page.goto(`${visitor.baseUrl}/kept/here/problems`);
    await page.waitForFunction(() => getComputedStyle(document.body).maxWidth === "672px");
    await visitor.leave();
  });

  test("the first load is small", async () => {
    const get = async (path: string) => await (await fetch(service.baseUrl + path)).text();
    const page = await get("/");
    const assets = [...page.matchAll(/(?:src|href)="\.(\/assets\/[^"]+)"/g)].map(([, path]) => path!);
    assert.equal(assets.length, 2);
    const bodies = [page, ...(await Promise.all(assets.map(get)))];
    const size = bodies.reduce((sum, body) => sum + gzipSync(body).length, 0);
    console.log(`the first load is ${size} bytes, compressed by gzip`);
    assert.ok(size < 80_000, `${size}`);
  });
});

async function fillTrade(page: Page, qty: string): Promise<void> {
  await page.getByRole("combobox", { name: "type" }).selectOption("sell");
  await page.getByRole("textbox", { name: "ticker" }).fill("MDB");
  await page.getByRole("textbox", { name: "qty" }).fill(qty);
}

/** Whether a chart has so many colours of series, and not only its axes. */
function drawnColours(least: number): boolean {
  const canvas = document.querySelector<HTMLCanvasElement>(".plot canvas")!;
  const { data } = canvas.getContext("2d")!.getImageData(0, 0, canvas.width, canvas.height);
  const colours = new Map<number, number>();
  for (let at = 0; at < data.length; at += 4) {
    const [red, green, blue, alpha] = [data[at]!, data[at + 1]!, data[at + 2]!, data[at + 3]!];
    const grey = Math.max(red, green, blue) - Math.min(red, green, blue) < 40;
    if (alpha === 255 && !grey) colours.set((red << 16) | (green << 8) | blue, 1);
  }
  return colours.size >= least;
}

/** The text of the file that a click downloads. */
async function saved(page: Page, button: Locator): Promise<string> {
  const [download] = await Promise.all([page.waitForEvent("download"), button.click()]);
  return readFileSync(await download.path(), "utf8");
}

/** Serves a service below a path. */
async function pathProxy(to: string, path: string): Promise<Server> {
  const server = createServer((incoming, outgoing) => {
    if (!incoming.url!.startsWith(`${path}/`)) return void outgoing.writeHead(404).end();
    const options = { method: incoming.method!, headers: { ...incoming.headers, host: new URL(to).host } };
    const forward = request(to + incoming.url!.slice(path.length), options, (answer) => {
      outgoing.writeHead(answer.statusCode!, answer.headers);
      answer.pipe(outgoing);
    });
    forward.on("error", () => outgoing.destroy());
    outgoing.on("close", () => forward.destroy());
    incoming.pipe(forward);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server;
}
