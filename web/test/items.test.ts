// What a person does with items who looks for something: reads them whole, searches, goes to a moment, arranges the table, and takes
// a selection along. With the real service and a real browser.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import type { Locator, Page } from "playwright-core";

import { violationsOf } from "./axe.js";
import { eventually, PATIENCE, skip, stage } from "./service.js";

/** A definition that does not declare all members, with a name that is no plural. */
const AUDIT = {
  history: "audit",
  title: "AuditEntry",
  owner: { collection: "rooms", field: "roomId", type: "string" },
  pageSize: 10,
  maxItemBytes: 30_000,
  date: "at",
  filters: ["actor"],
  item: {
    type: "object",
    properties: {
      actor: { type: "string", maxLength: 60 },
      note: { type: "string", maxLength: 5000 },
      count: { type: "integer" },
      at: { type: "string", format: "date-time" },
    },
    required: ["actor"],
  },
};

const NAMES = Array.from({ length: 29 }, (_, index) => `field${index + 1}`);
const WIDE = {
  history: "readings",
  title: "Reading",
  owner: { collection: "rooms", field: "roomId", type: "string" },
  pageSize: 10,
  maxItemBytes: 8000,
  date: "at",
  item: {
    type: "object",
    additionalProperties: false,
    properties: {
      ...Object.fromEntries(NAMES.map((name) => [name, { type: "integer" }])),
      at: { type: "string", format: "date-time" },
    },
  },
};

const trade = (index: number) => ({
  type: index % 3 ? "buy" : "sell",
  ticker: ["ACME", "AMD", "MDB", "ZETA-A"][index % 4],
  qty: 1 + (index % 900),
  price: "20.25",
  date: new Date(Date.UTC(2024, 0, 1) + index * 3_600_000).toISOString(),
});
const trades = (count: number) => Array.from({ length: count }, (_, index) => trade(index));

const seqs = (page: Page) =>
  page.locator("table.items tr[data-seq]").evaluateAll((rows) => rows.map((row) => Number(row.getAttribute("data-seq"))));
const range = (from: number, to: number) =>
  Array.from({ length: Math.abs(to - from) + 1 }, (_, index) => from + (from < to ? index : -index));
const step = (page: Page, name: string) => page.getByRole("button", { name: new RegExp(`^${name}: `) });

suite("items in the explorer", { skip }, () => {
  const { service, visit } = stage([AUDIT, WIDE]);
  let customers = 500;

  /** Customer 77 has more trades than three requests with a filter examine. Two of them are rare. */
  let filling: Promise<void> | undefined;
  const fill = () => {
    const many = trades(25_000);
    for (const at of [5, 12_345]) many[at] = { ...many[at]!, ticker: "RARE" };
    return (filling ??= service.append("/v1/customers/77/trades", many));
  };

  test(
    "an item is shown as it is stored, with what the definition does not declare, and is copied as JSON",
    visit(async (visitor) => {
      await service.append("/v1/rooms/attic/audit", [
        { actor: "ann", note: "first\nsecond", extra: { ip: "10.0.0.1", ports: [22, 80] }, at: "2026-01-05T00:00:00Z" },
        { actor: "bob", at: "2026-01-06T00:00:00Z" },
      ]);
      const page = await visitor.open("/explorer/rooms/attic/audit/1");
      const field = page.locator("dl.item > div", { hasText: "extra" });
      await field.getByText("10.0.0.1").waitFor();
      await field.getByText("The definition does not declare it").waitFor();
      const { page: _, ...stored } = await service.get("/v1/rooms/attic/audit/1");
      assert.deepEqual(JSON.parse(await page.getByLabel("The item as JSON").innerText()), stored);
      const copied = () => page.evaluate(() => navigator.clipboard.readText());
      await page.getByRole("button", { name: "Copy JSON" }).click();
      await eventually(async () => JSON.parse((await copied()) || "null"), stored);
      await page.getByRole("button", { name: "Copy note" }).click();
      await eventually(copied, "first\nsecond");
      await page.getByRole("button", { name: "Copy the address in the API" }).click();
      await eventually(copied, `${service.baseUrl}/v1/rooms/attic/audit/1`);

      // The same in the table: as columns, and a row opens to all of it.
      await page.goto(`${service.baseUrl}/explorer/rooms/attic/audit`);
      await page.getByText("2 audit items on 1 page of 10").waitFor();
      await page.locator("td[data-name=extra]").getByText("10.0.0.1").waitFor();
      await page.getByRole("button", { name: "All of audit item 1" }).click();
      assert.deepEqual(JSON.parse(await page.getByLabel("The item as JSON").innerText()), stored);
      await page.getByRole("button", { name: "Copy the permanent link" }).click();
      await eventually(copied, `${service.baseUrl}/explorer/rooms/attic/audit/1`);
      await page.getByRole("button", { name: "All of audit item 1" }).click();
      assert.equal(await page.locator("tr.opened").count(), 0);
    }, { permissions: ["clipboard-read", "clipboard-write"] }),
  );

  test("oldest and End lead to the oldest items of a selection, newest first", visit(async (visitor) => {
    await service.append(`/v1/customers/${++customers}/trades`, trades(600));
    const path = `/explorer/customers/${customers}/trades?ticker=MDB`;
    const page = await visitor.open(path);
    const all = range(600, 1).filter((seq) => seq % 4 === 3);
    await eventually(() => seqs(page), all.slice(0, 50));
    await step(page, "Last").click();
    await eventually(() => seqs(page), all.slice(-50));
    assert.equal(new URL(page.url()).searchParams.get("after"), "0");
    assert.equal(await step(page, "Next").isDisabled(), true);
    await step(page, "Previous").click();
    await eventually(() => seqs(page), all.slice(-100, -50));
    await page.goto(service.baseUrl + path);
    await eventually(() => seqs(page), all.slice(0, 50));
    await page.getByRole("heading", { level: 1 }).click();
    await page.keyboard.press("End");
    await eventually(() => seqs(page), all.slice(-50));
    await page.keyboard.press("Home");
    await eventually(() => seqs(page), all.slice(0, 50));
  }));

  test("a rare value is searched for until everything is examined, and the search can be stopped", visit(async (visitor) => {
    await fill();
    // The second request waits until the search is stopped.
    const page = await visitor.open("/problems");
    let held = 0;
    let release = () => {};
    const stopped = new Promise<void>((resolve) => (release = resolve));
    await page.route(/trades\?.*before=/, async (route) => {
      held++;
      await stopped;
      await route.continue().catch(() => undefined);
    });
    await page.goto(`${service.baseUrl}/explorer/customers/77/trades?ticker=RARE`);
    await page.getByText("0 trades found, examined from number 25,000 down to 14,991").waitFor();
    await eventually(() => held, 1);
    await page.getByRole("button", { name: "Stop" }).click();
    await page.getByText("no trades here; more may follow").waitFor();
    await page.getByText("No trades match in what was examined.").waitFor();
    release();
    await page.getByRole("button", { name: "Go on" }).click();
    await page.getByText("2 trades, numbers 6 to 12,346; everything is examined").waitFor();
    assert.deepEqual(await seqs(page), [12_346, 6]);
    assert.equal(await page.getByRole("button", { name: "Go on" }).count(), 0);
    // From the oldest on, by itself, also when the service is not reached for a while.
    await page.unrouteAll({ behavior: "ignoreErrors" });
    await page.route(/trades\?.*after=/, (route) => route.abort(), { times: 1 });
    await page.getByRole("combobox", { name: "Order" }).selectOption("asc");
    await eventually(() => seqs(page), [6, 12_346]);
    await page.getByText("everything is examined").waitFor();
  }));

  test("a date and a time lead to the page where they are, in the zone of the browser or in UTC, in either order", visit(async (visitor) => {
    await fill();
    const page = await visitor.open("/explorer/customers/77/trades");
    const marked = page.locator("tr.marked");
    const goTo = async (zone: string) => {
      await page.getByLabel(`Go to this date and time (${zone})`).fill("2024-03-09T14:30");
      await page.getByRole("button", { name: "Go", exact: true }).click();
    };
    await goTo("Europe/Berlin");
    // 14:30 in Berlin is 13:30 in UTC: the next trade is that of 14:00, number 1 + 68 days and 14 hours.
    await eventually(() => marked.getAttribute("data-seq"), String(1 + 68 * 24 + 14));
    assert.equal(await marked.locator("td[data-name=date]").innerText(), "2024-03-09 15:00:00");
    assert.equal(new URL(page.url()).searchParams.get("page"), "165");
    await eventually(() => seqs(page), range(1650, 1641));
    await eventually(() => marked.evaluate((row) => row.getBoundingClientRect().bottom < innerHeight), true);

    // One switch: for the table, for what is gone to and chosen, and for charts.
    await page.getByRole("combobox", { name: "Time zone" }).selectOption("UTC");
    await eventually(() => marked.locator("td[data-name=date]").innerText(), "2024-03-09 14:00:00");
    await page.getByRole("combobox", { name: "Order" }).selectOption("asc");
    await goTo("UTC");
    await eventually(() => marked.getAttribute("data-seq"), String(1 + 68 * 24 + 15));
    await eventually(() => seqs(page), range(1641, 1650));
    await page.getByLabel("from (UTC)").fill("2024-03-09");
    await page.getByLabel("from: the time of the day").fill("14:30");
    await page.getByLabel("to (UTC)").fill("2024-03-09");
    await page.getByRole("button", { name: "Show", exact: true }).click();
    await eventually(() => seqs(page), range(1648, 1656));
    assert.equal(new URL(page.url()).searchParams.get("from"), "2024-03-09T14:30:00Z");
    assert.equal(new URL(page.url()).searchParams.get("to"), "2024-03-09");
    await page.getByRole("combobox", { name: "Time zone" }).selectOption("Europe/Berlin");
    await page.reload();
    assert.equal(await page.getByLabel("from: the time of the day").inputValue(), "15:30:00");
    await eventually(() => seqs(page), range(1648, 1656));
    await page.getByRole("combobox", { name: "Time zone" }).selectOption("UTC");
    await page.getByRole("link", { name: "Chart" }).click();
    await page.getByRole("application", { name: "Trades per hour, UTC" }).waitFor();
    await page.getByRole("combobox", { name: "Time zone" }).selectOption("Europe/Berlin");
    await page.getByRole("application", { name: "Trades per hour, Europe/Berlin" }).waitFor();

    // Of a selection by values it is the window that begins there; after the last item it is the last one.
    await page.goto(`${service.baseUrl}/explorer/customers/77/trades?ticker=AMD&order=asc`);
    await goTo("Europe/Berlin");
    await eventually(() => marked.getAttribute("data-seq"), "1650");
    assert.equal((await seqs(page))[0], 1650);
    await page.goto(`${service.baseUrl}/explorer/customers/77/trades`);
    await page.getByLabel("Go to this date and time (Europe/Berlin)").fill("2030-01-01T00:00");
    await page.getByRole("button", { name: "Go", exact: true }).click();
    await eventually(() => marked.getAttribute("data-seq"), "25000");
  }, { timezoneId: "Europe/Berlin" }));

  test("the days and times of a span stay as they are typed", visit(async (visitor) => {
    await fill();
    const page = await visitor.open("/explorer/customers/77/trades?order=asc");
    // A year begins with few digits, and midnight is a time like others.
    for (const [end, typed, day] of [["from", "03092024", "2024-03-09"], ["to", "03102024", "2024-03-10"]] as const) {
      const [date, time] = [page.getByLabel(`${end} (Europe/Berlin)`), page.getByLabel(`${end}: the time of the day`)];
      await date.focus();
      await page.keyboard.type(typed);
      assert.equal(await date.inputValue(), day);
      await time.focus();
      await page.keyboard.type("120000AM");
      assert.deepEqual([await date.inputValue(), await time.inputValue()], [day, "00:00:00"]);
    }
    await page.keyboard.press("Enter");
    await eventually(() => seqs(page), range(1632, 1655));
    assert.deepEqual(["from", "to"].map((end) => new URL(page.url()).searchParams.get(end)), ["2024-03-08T23:00:00Z", "2024-03-09T23:00:00Z"]);
    // What is no moment is a text, also when its beginning is one.
    await page.goto(`${service.baseUrl}/explorer/customers/77/trades?from=nonsense`);
    const text = page.locator("input[type=text][name=from]");
    await text.fill("");
    await text.pressSequentially("2024-03-09T13:00:00Z");
    assert.equal(await text.inputValue(), "2024-03-09T13:00:00Z");
    await text.press("Enter");
    await eventually(() => page.getByLabel("from: the time of the day").inputValue(), "14:00:00");
    assert.equal(await page.getByLabel("from (Europe/Berlin)").inputValue(), "2024-03-09");
  }, { timezoneId: "Europe/Berlin" }));

  test("rows of a view are as many as the reader wants, on any page and of a selection", visit(async (visitor) => {
    await service.append(`/v1/customers/${++customers}/trades`, trades(120));
    const page = await visitor.open(`/explorer/customers/${customers}/trades`);
    await eventually(() => seqs(page), range(120, 111));
    const rows = page.getByRole("combobox", { name: "Rows" });
    await rows.selectOption("25");
    await eventually(() => seqs(page), range(120, 96));
    await step(page, "Next").click();
    await eventually(() => seqs(page), range(95, 71));
    await page.getByText("final", { exact: true }).waitFor();
    await step(page, "Last").click();
    await eventually(() => seqs(page), range(25, 1));
    await rows.selectOption("100");
    await eventually(() => seqs(page), range(100, 1));
    await page.reload();
    await eventually(() => seqs(page), range(100, 1));
    await page.getByRole("link", { name: "buy" }).first().click();
    await eventually(() => seqs(page), range(120, 1).filter((seq) => (seq - 1) % 3));
    await rows.selectOption("10");
    await eventually(async () => (await seqs(page)).length, 10);
    // What is appended comes to the newest, however many rows there are.
    await page.goto(`${service.baseUrl}/explorer/customers/${customers}/trades?_rows=25`);
    await page.locator("[data-live=stream]").waitFor();
    await service.append(`/v1/customers/${customers}/trades`, trades(1));
    await eventually(() => seqs(page), range(121, 96));
  }));

  test("older items go on exactly where the newest end, and newer ones where those end: no row comes twice", visit(async (visitor) => {
    await service.append(`/v1/customers/${++customers}/trades`, trades(67));
    const page = await visitor.open(`/explorer/customers/${customers}/trades?_rows=25`);
    await eventually(() => seqs(page), range(67, 43));
    await step(page, "Next").click();
    await eventually(() => seqs(page), range(42, 18));
    await page.getByText("numbers 18 to 42").waitFor();
    await step(page, "Next").click();
    await eventually(() => seqs(page), range(17, 1));
    assert.equal(await step(page, "Next").isDisabled(), true);
    await step(page, "Previous").click();
    await eventually(() => seqs(page), range(42, 18));
    // Others have come: what is newer begins where these end, and grows.
    await service.append(`/v1/customers/${customers}/trades`, trades(5));
    await page.getByText("72 trades on 8 pages").waitFor();
    await step(page, "Previous").click();
    await eventually(() => seqs(page), range(67, 43));
    await step(page, "Previous").click();
    await eventually(() => seqs(page), range(72, 68));
    await service.append(`/v1/customers/${customers}/trades`, trades(1));
    await eventually(() => seqs(page), range(73, 68));
    await page.reload();
    await eventually(() => seqs(page), range(73, 68));
    // The same items in the other order, and by other rows.
    await page.goto(`${service.baseUrl}/explorer/customers/${customers}/trades?before=43&_rows=25`);
    await eventually(() => seqs(page), range(42, 18));
    await page.getByRole("combobox", { name: "Order" }).selectOption("asc");
    await eventually(() => seqs(page), range(18, 42));
    await page.getByRole("combobox", { name: "Rows" }).selectOption("10");
    await eventually(() => seqs(page), range(33, 42));
  }));

  test("the newest items are as many as a page has, and none of the steps is a 404", visit(async (visitor) => {
    await service.append(`/v1/customers/${++customers}/trades`, trades(11));
    const failed: string[] = [];
    const page = await visitor.open(`/explorer/customers/${customers}/trades`);
    page.on("response", (response) => response.status() >= 400 && failed.push(response.url()));
    await eventually(() => seqs(page), range(11, 2));
    await page.getByText("page 2 growing, 1 of 10").waitFor();

    // The keys, the buttons and the slider go down the list: of a list, and from item to item.
    const right = async (name: string) => {
      await page.getByRole("heading", { level: 1 }).click();
      await page.keyboard.press(name);
    };
    await right("ArrowRight");
    await eventually(() => seqs(page), [1]);
    const slider = page.getByRole("slider");
    await slider.focus();
    await slider.press("Home");
    await eventually(() => seqs(page), [11]);
    await slider.press("End");
    await eventually(() => seqs(page), range(10, 1));
    await page.getByRole("link", { name: "10", exact: true }).click();
    await page.getByRole("heading", { name: "Trade 10" }).waitFor();
    await eventually(() => step(page, "Next").getAttribute("aria-label"), "Next: older");
    await eventually(() => step(page, "Next").isEnabled(), true);
    await right("ArrowRight");
    await page.getByRole("heading", { name: "Trade 9" }).waitFor();
    await eventually(() => step(page, "First").isEnabled(), true);
    await right("Home");
    await page.getByRole("heading", { name: "Trade 11" }).waitFor();
    await eventually(() => step(page, "Next").isEnabled(), true);
    assert.equal(await step(page, "Previous").isDisabled(), true);
    await right("ArrowLeft");
    await right("End");
    await page.getByRole("heading", { name: "Trade 1", exact: false }).waitFor();
    await eventually(() => step(page, "Previous").isEnabled(), true);
    assert.equal(await step(page, "Next").isDisabled(), true);
    // An item of a list that shows the oldest first goes the same way.
    await page.goto(`${service.baseUrl}/explorer/customers/${customers}/trades?order=asc&page=1`);
    await page.getByRole("link", { name: "4", exact: true }).click();
    await eventually(() => step(page, "Next").getAttribute("aria-label"), "Next: newer");
    await eventually(() => step(page, "Next").isEnabled(), true);
    await right("ArrowRight");
    await page.getByRole("heading", { name: "Trade 5" }).waitFor();
    await page.getByRole("link", { name: "Page 1" }).click();
    await eventually(() => seqs(page), range(1, 10));
    assert.equal(await page.locator("tr.marked").getAttribute("data-seq"), "5");
    assert.deepEqual(failed, []);
  }));

  test("numbers and words do not break, long texts open, lines are lines, and emoji stay together", visit(async (visitor) => {
    const long = `${"word ".repeat(790)}the end`;
    await service.append("/v1/rooms/loft/audit", [
      { actor: "carolina-of-the-north", note: long, count: 53_095_629, at: "2026-01-05T00:00:00Z" },
      { actor: "dan", note: "one\r\ntwo\n👩‍👩‍👧", count: 9_007_199_254_740_991, at: "2026-01-05T00:00:00Z" },
    ]);
    await service.append("/v1/rooms/loft/readings", [
      { ...Object.fromEntries(NAMES.map((name, index) => [name, 1_000_000 + index])), at: "2026-01-05T00:00:00Z" },
    ]);
    const page = await visitor.open("/explorer/rooms/loft/audit");
    const note = page.locator("[data-seq='1'] td[data-name=note] .cell");
    await note.waitFor();
    assert.equal(await page.locator(".unseen").count(), 0);
    assert.equal(await page.locator("[data-seq='2'] td[data-name=note]").innerText(), "one\ntwo\n👩‍👩‍👧");
    assert.equal(await note.evaluate((cell) => cell.scrollHeight > cell.clientHeight && cell.clientHeight < 150), true);
    const lines = (cells: Locator) =>
      cells.evaluateAll((cells) =>
        cells.map((cell) => {
          const rows = new Set<number>();
          const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
          while (texts.nextNode()) {
            const text = document.createRange();
            text.selectNode(texts.currentNode);
            for (const { bottom } of Array.from(text.getClientRects())) rows.add(Math.round(bottom));
          }
          return rows.size;
        }),
      );
    for (const width of [640 + 1, 1280, 3840]) {
      await page.setViewportSize({ width, height: 900 });
      for (const name of ["actor", "count", "at"]) assert.deepEqual(await lines(page.locator(`td[data-name=${name}] .cell`)), [1, 1], `${name}, ${width}`);
    }
    await page.getByRole("button", { name: "All of audit item 1" }).click();
    await page.locator("tr.opened dd .whole", { hasText: "the end" }).waitFor();
    assert.equal(await page.locator("tr.opened .whole", { hasText: "the end" }).evaluate((whole) => whole.scrollHeight <= whole.clientHeight + 1), true);

    await page.goto(`${service.baseUrl}/explorer/rooms/loft/readings`);
    await page.locator("td[data-name=field29]").waitFor();
    const scrolls = () => page.locator(".scroll").first().evaluate((part) => part.scrollWidth > part.clientWidth);
    assert.deepEqual(await lines(page.locator("td .cell")), Array(30).fill(1));
    // A wide screen shows them all.
    assert.equal(await scrolls(), false, "3840 pixels");
    await page.setViewportSize({ width: 1280, height: 900 });
    await eventually(scrolls, true);
    assert.deepEqual(await lines(page.locator("td .cell")), Array(30).fill(1));
  }));

  test("the edge of a column is dragged, and moved by keys, and the column stays as wide", visit(async (visitor) => {
    // More than a view has: elsewhere these keys lead to older ones.
    await service.append("/v1/rooms/hut/audit", Array.from({ length: 25 }, (_, count) => ({ actor: "ann", note: "one two three four five", count })));
    const page = await visitor.open("/explorer/rooms/hut/audit");
    const edge = page.getByRole("separator", { name: "Width of actor" });
    await edge.waitFor();
    const width = () => page.locator("[data-seq='25'] td[data-name=actor] .cell").evaluate((cell) => cell.getBoundingClientRect().width);
    const natural = await width();
    assert.equal(await edge.getAttribute("aria-valuetext"), "as wide as its values");
    const drag = async (by: number) => {
      const { x, y, width, height } = (await edge.boundingBox())!;
      await page.mouse.move(x + width / 2, y + height / 2);
      await page.mouse.down();
      await page.mouse.move(x + width / 2 + by / 2, y + height / 2);
      await page.mouse.move(x + width / 2 + by, y + height / 2);
      const whileDragged = await page.locator("[data-seq='25'] td[data-name=actor] .cell").evaluate((cell) => cell.getBoundingClientRect().width);
      await page.mouse.up();
      return whileDragged;
    };
    const dragged = await drag(200);
    // A width is in characters, whole ones.
    await eventually(async () => Math.abs((await width()) - (natural + 200)) < 10, true);
    assert.equal(Math.round(dragged), Math.round(await width()), "it is as wide while it is dragged");
    const characters = Number(await edge.getAttribute("aria-valuenow"));
    assert.ok(characters > 10);
    await edge.focus();
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowLeft");
    await page.keyboard.press("Shift+ArrowRight");
    await eventually(() => edge.getAttribute("aria-valuenow"), String(characters + 11));
    assert.equal(new URL(page.url()).search, "", "the keys of the pages do nothing there");
    const wide = await width();
    await page.reload();
    await eventually(width, wide);
    await drag(-2000);
    await eventually(() => edge.getAttribute("aria-valuenow"), "1");
    await edge.dblclick();
    await eventually(width, natural);
    await edge.press("Shift+ArrowRight");
    await eventually(async () => (await width()) > natural, true);
    await edge.press("Home");
    await eventually(width, natural);
  }));

  test("columns are hidden, moved and pinned, and stay so", visit(async (visitor) => {
    await service.append("/v1/rooms/den/readings", [
      { ...Object.fromEntries(NAMES.map((name, index) => [name, 1_000_000 + index])), at: "2026-01-05T00:00:00Z" },
    ]);
    const page = await visitor.open("/explorer/rooms/den/readings");
    const heads = () => page.locator("table.items thead th").allInnerTexts();
    await eventually(async () => (await heads()).slice(0, 4), ["seq", "field1", "field2", "field3"]);
    await page.getByText("Table", { exact: true }).click();
    const row = (name: string) => page.locator(".columns > li", { has: page.getByRole("checkbox", { name, exact: true }) });
    await row("field1").getByRole("checkbox", { name: "field1", exact: true }).uncheck();
    await page.getByRole("button", { name: "field3 earlier" }).click();
    await page.getByLabel("at stays in view").check();
    await page.getByLabel("Rows close to each other").check();
    await eventually(async () => (await heads()).slice(0, 4), ["seq", "at UTC", "field3", "field2"]);
    await page.reload();
    await eventually(async () => (await heads()).slice(0, 4), ["seq", "at UTC", "field3", "field2"]);
    assert.equal(await page.locator("table.items.dense").count(), 1);
    await page.locator(".scroll").first().evaluate((part) => (part.scrollLeft = 600));
    const left = (of: string) => page.locator(of).evaluate((cell) => Math.round(cell.getBoundingClientRect().left));
    const edge = await left("th.seq");
    await eventually(() => left("td[data-name=at]"), edge + Math.round(await page.locator("th.seq").evaluate((cell) => cell.getBoundingClientRect().width)));
    assert.ok((await left("td[data-name=field3]")) < edge, "the others are scrolled");
    await page.getByText("Table", { exact: true }).click();
    await page.getByRole("button", { name: "As the definition has them" }).click();
    await eventually(async () => (await heads()).slice(0, 4), ["seq", "field1", "field2", "field3"]);
  }));

  test("a value of a filter is chosen by a click, with a comma too, and a text is found in what is loaded", visit(async (visitor) => {
    await service.append("/v1/rooms/nook/audit", [
      { actor: "bob, ltd", note: "late delivery" },
      { actor: "ann", note: "on time" },
      { actor: "bob, ltd", note: "paid" },
    ]);
    const page = await visitor.open("/explorer/rooms/nook/audit");
    await page.getByText("Several values stand between commas").waitFor();
    await page.getByRole("link", { name: "bob, ltd" }).first().click();
    await eventually(() => seqs(page), [3, 1]);
    assert.equal(await page.getByRole("textbox", { name: "actor" }).inputValue(), '"bob, ltd"');
    await page.getByRole("textbox", { name: "actor" }).fill('"bob, ltd", ann');
    await page.getByRole("textbox", { name: "actor" }).press("Enter");
    await eventually(() => seqs(page), [3, 2, 1]);
    const find = page.getByRole("searchbox", { name: "Find a text in the rows that are loaded" });
    await find.fill("LATE");
    await eventually(() => seqs(page), [1]);
    await page.getByText("1 of 3 audit items that are loaded have “LATE”").waitFor();
    await find.fill("");
    await eventually(() => seqs(page), [3, 2, 1]);
    await page.goto(`${service.baseUrl}/explorer/rooms/nook/audit/1`);
    await page.getByRole("link", { name: "Only these" }).click();
    await eventually(() => seqs(page), [3, 1]);
  }));

  test("all that is selected is taken along as CSV and NDJSON", visit(async (visitor) => {
    await service.append(`/v1/customers/${++customers}/trades`, trades(1000));
    const page = await visitor.open(`/explorer/customers/${customers}/trades?ticker=AMD&from=2024-01-03&to=2024-01-31`);
    await eventually(async () => (await seqs(page)).length, 50);
    await page.getByText("Download").click();
    await page.getByText("at most 100,000 trades").waitFor();
    for (const format of ["csv", "ndjson"]) {
      const span = "from=2024-01-03T00:00:00Z&to=2024-02-01T00:00:00Z";
      const whole = await (await fetch(`${service.baseUrl}/v1/customers/${customers}/trades/export.${format}?${span}`)).text();
      const chosen = whole.split(/(?<=\n)/).filter((line, index) => (format === "csv" && index === 0) || line.includes("AMD"));
      assert.ok(chosen.length > 150);
      const button = page.getByRole("button", { name: `all that is selected, ${format.toUpperCase()}` });
      const [download] = await Promise.all([page.waitForEvent("download"), button.click()]);
      assert.equal(readFileSync(await download.path(), "utf8"), chosen.join(""));
      await page.getByText(`${chosen.length - (format === "csv" ? 1 : 0)} trades saved`).waitFor();
    }
    // It says how far it is, and can be stopped.
    let held = 0;
    await page.route(/trades\?.*after=/, () => void held++);
    await page.getByRole("button", { name: "all that is selected, CSV" }).click();
    await page.getByText(/^100 trades, examined to number \d+ of 1,000$/).waitFor();
    await eventually(() => held, 1);
    await page.locator(".sheet").getByRole("button", { name: "Stop" }).click();
    await page.getByText("stopped: nothing was saved").waitFor();
    await page.unrouteAll({ behavior: "ignoreErrors" });
  }));

  test("of a selection that is too large the first 100,000 items are taken along, and it is said that more follow", visit(async (visitor) => {
    const file = join(service.directory, "many.ndjson");
    writeFileSync(file, trades(100_030).map((trade) => `${JSON.stringify({ ...trade, ticker: "MDB" })}\n`).join(""));
    service.command("import", file, "--history", "trades", "--owner", `${++customers}`);
    visitor.context.setDefaultTimeout(5 * PATIENCE);
    const page = await visitor.open(`/explorer/customers/${customers}/trades?ticker=MDB`);
    await page.getByText("100,030 trades on 10,003 pages").waitFor();
    await page.getByText("Download").click();
    const button = page.getByRole("button", { name: "all that is selected, NDJSON" });
    const [download] = await Promise.all([page.waitForEvent("download"), button.click()]);
    await page.getByText("100,000 trades saved: more follow after number 100,000.").waitFor();
    const saved = readFileSync(await download.path(), "utf8").trimEnd().split("\n");
    assert.deepEqual([saved.length, JSON.parse(saved[0]!).seq, JSON.parse(saved.at(-1)!).seq], [100_000, 1, 100_000]);
  }));

  test("the date of an append is of the browser's zone or of UTC, by the same switch, and the item names the zone", visit(async (visitor) => {
    const path = `/v1/customers/${++customers}/trades`;
    const page = await visitor.open(`/explorer/customers/${customers}/trades?_tab=append`);
    const field = (zone: string) => page.getByLabel(`date (${zone})`);
    await page.getByRole("combobox", { name: "type" }).selectOption("buy");
    await page.getByRole("textbox", { name: "ticker" }).fill("MDB");
    await page.getByRole("textbox", { name: "qty" }).fill("4");
    // As a person types it: each part of the field keeps what is typed into it.
    await field("Europe/Berlin").focus();
    await page.keyboard.type("03092024");
    await page.keyboard.press("Tab");
    await page.keyboard.type("023005PM");
    assert.equal(await field("Europe/Berlin").inputValue(), "2024-03-09T14:30:05");
    const zone = page.getByRole("combobox", { name: "Time zone" });
    await zone.selectOption("UTC");
    assert.equal(await field("UTC").inputValue(), "2024-03-09T13:30:05");
    await page.getByRole("button", { name: "Append", exact: true }).click();
    await page.getByRole("link", { name: "number 1" }).click();
    assert.equal((await service.get(path)).items[0].date, "2024-03-09T13:30:05.000Z");
    const date = page.locator("dl.item > div", { has: page.locator("time") });
    assert.match(await date.innerText(), /^date UTC\n[^]*2024-03-09 13:30:05/);
    await zone.selectOption("Europe/Berlin");
    await eventually(async () => /^date Europe\/Berlin\n[^]*2024-03-09 14:30:05/.test(await date.innerText()), true);

    // Another like it: the fields are as they were.
    await page.goBack();
    await page.getByRole("button", { name: "Append one like it" }).click();
    assert.equal(await field("Europe/Berlin").inputValue(), "2024-03-09T14:30:05");
    await page.getByRole("textbox", { name: "qty" }).fill("5");
    await page.getByRole("button", { name: "Append", exact: true }).click();
    await page.getByRole("link", { name: "number 2" }).waitFor();
    const { items } = await service.get(path);
    assert.deepEqual(items.map(({ qty, date }: { qty: number; date: string }) => [qty, date]), [4, 5].map((qty) => [qty, "2024-03-09T13:30:05.000Z"]));
  }, { timezoneId: "Europe/Berlin" }));

  test("commands for a shell end: that of the stream is a comment", visit(async (visitor) => {
    await service.append("/v1/rooms/shed/audit", Array.from({ length: 21 }, (_, index) => ({ actor: "ann", count: index })));
    const page = await visitor.open("/explorer/rooms/shed/audit");
    await page.getByText("21 audit items on 3 pages of 10").waitFor();
    await page.getByText("Copy as curl").click();
    const lines = (await page.locator(".sheet code").innerText()).split("\n");
    assert.ok(lines.some((line) => line.startsWith("# curl") && line.includes("/live?")));
    assert.deepEqual(lines.filter((line) => line.includes("/live") && !line.startsWith("#")), []);
  }));

  test("opened rows, menus and a marked row are right for assistive technology, and no wider than a phone", visit(async (visitor) => {
    await service.append("/v1/rooms/cave/audit", [
      { actor: "ann", note: "x".repeat(3000), extra: { list: [1, 2] }, at: "2026-01-05T00:00:00Z" },
      { actor: "bob", at: "2026-01-05T00:00:00Z" },
    ]);
    const page = await visitor.open("/explorer/rooms/cave/audit?page=1&_mark=2");
    for (const width of [1280, 390]) {
      await page.setViewportSize({ width, height: 844 });
      for (const colorScheme of ["light", "dark"] as const) {
        await page.emulateMedia({ colorScheme });
        await page.reload();
        await page.locator("tr.marked").waitFor();
        const fold = page.getByText("Go to, find, take along");
        if (await fold.isVisible()) await fold.click();
        for (const seq of [1, 2]) await page.getByRole("button", { name: `All of audit item ${seq}` }).click();
        assert.deepEqual(await violationsOf(page), [], `${width}, ${colorScheme}`);
        await page.getByText("Table", { exact: true }).click();
        await page.getByLabel("extra stays in view").waitFor();
        assert.deepEqual(await violationsOf(page), [], `the menu, ${width}, ${colorScheme}`);
        await page.keyboard.press("Escape");
        for (const name of ["Download", "Copy as curl"]) {
          await page.getByText(name, { exact: true }).click();
          const { x, width: wide } = (await page.locator(".menu[open] .sheet").boundingBox())!;
          assert.ok(x >= 0 && x + wide <= width && wide > 200, `${name}, ${width}: from ${x}, ${wide} pixels`);
          await page.keyboard.press("Escape");
        }
        assert.equal(await page.evaluate(() => document.documentElement.scrollWidth > innerWidth), false, `${width}`);
      }
    }
  }));
});
