// What a support person does in a day: ten tasks, with the clicks and the fields that each takes. README.md has the numbers.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { before, suite, test } from "node:test";
import type { BrowserContextOptions, Page } from "playwright-core";

import { eventually, root, skip, stage, type Visitor } from "./service.js";

interface Task {
  /** As README.md calls it. */
  name: string;
  /** Where it begins. */
  from: string;
  way: (page: Page, visitor: Visitor) => Promise<void>;
  options?: BrowserContextOptions;
}

const DAY = 86_400_000;
const TICKERS = ["ACME", "AMD", "MDB", "ZETA-A"];
const trade = (index: number, at: number) => ({ type: "buy", ticker: TICKERS[index % 4]!, qty: 1 + (index % 900), price: "20.25", date: new Date(at).toISOString() });
/** Four on each of some days. */
const days = (first: number, count: number) => Array.from({ length: count * 4 }, (_, index) => trade(index, first + Math.floor(index / 4) * DAY + (index % 4) * 3_600_000));

const rows = (page: Page) => page.locator("table.items tr[data-seq]");
const history = "/explorer/customers/7/trades";
const newestOfAmd = async (page: Page) => {
  await page.getByRole("textbox", { name: "ticker" }).fill("AMD");
  await page.getByRole("textbox", { name: "ticker" }).press("Enter");
  await page.getByRole("combobox", { name: "Rows" }).selectOption("10");
  await eventually(() => rows(page).count(), 10);
  await eventually(() => page.locator("td[data-name=ticker]").allInnerTexts(), Array(10).fill("AMD"));
};

suite("a support person's day", { skip }, () => {
  const { service, visitorOf } = stage([], "--allow-erase");
  before(async () => {
    await service.append("/v1/customers/7/trades", [...days(Date.UTC(2004, 2, 5), 10), ...days(Date.UTC(2009, 4, 25), 45)]);
    const many = days(Date.UTC(2010, 0, 1), 6250);
    for (const at of [5, 12_345]) many[at]!.ticker = "RARE";
    await service.append("/v1/customers/77/trades", many);
    await service.append("/v1/customers/66/trades", days(Date.UTC(2010, 0, 1), 1));
    assert.ok((await fetch(`${service.baseUrl}/v1/customers/66`, { method: "DELETE" })).ok);
  });

  const tasks: Task[] = [
    {
      name: "The third trade of 9 March 2004",
      from: history,
      async way(page) {
        await page.getByLabel("from (UTC)").fill("2004-03-09");
        await page.getByLabel("to (UTC)").fill("2004-03-09");
        await page.getByLabel("to (UTC)").press("Enter");
        await page.getByRole("combobox", { name: "Order" }).selectOption("asc");
        await eventually(() => rows(page).first().getAttribute("data-seq"), "17");
        await rows(page).nth(2).getByRole("link", { name: "19", exact: true }).click();
        await page.getByText("2004-03-09 02:00:00").waitFor();
      },
    },
    { name: "The newest ten of AMD", from: history, way: newestOfAmd },
    {
      name: "All of June 2009 as CSV",
      from: history,
      async way(page) {
        await page.getByLabel("from (UTC)").fill("2009-06-01");
        await page.getByLabel("to (UTC)").fill("2009-06-30");
        await page.getByLabel("to (UTC)").press("Enter");
        await page.getByText("Download").click();
        const csv = page.locator(".sheet .row", { hasText: "CSV" }).getByRole("link", { name: "all of this span" });
        const [download] = await Promise.all([page.waitForEvent("download"), csv.click()]);
        const lines = readFileSync(await download.path(), "utf8").trimEnd().split("\r\n");
        assert.equal(lines.length, 1 + 30 * 4);
        assert.ok(lines.slice(1).every((line) => line.includes("2009-06-")));
      },
    },
    {
      name: "Who has something new",
      from: "/",
      async way(page) {
        const customers = page.locator("section", { has: page.getByRole("heading", { name: "Customers" }) });
        await customers.getByRole("link", { name: "Who has something new" }).click();
        await page.locator("[data-live=stream]").waitFor();
        await page.getByText("None of the customers has got anything yet.").waitFor();
        await service.append("/v1/customers/8/trades", days(Date.UTC(2026, 0, 1), 1));
        await page.getByRole("link", { name: "4 trades new of customer 8" }).click();
        await page.getByText("4 trades on 1 page of 10").waitFor();
      },
    },
    {
      name: "A rare value",
      from: "/explorer/customers/77/trades",
      async way(page) {
        await page.getByRole("textbox", { name: "ticker" }).fill("RARE");
        await page.getByRole("textbox", { name: "ticker" }).press("Enter");
        await page.getByText("2 trades, numbers 6 to 12,346; everything is examined").waitFor();
      },
    },
    {
      name: "The item of a permalink, its neighbours, and its page",
      from: `${history}/25`,
      async way(page) {
        await page.getByRole("heading", { name: "Trade 25" }).waitFor();
        await eventually(() => page.getByRole("button", { name: "Next: older" }).isEnabled(), true);
        await page.keyboard.press("ArrowRight");
        await page.getByRole("heading", { name: "Trade 24" }).waitFor();
        await eventually(() => page.getByRole("button", { name: "Previous: newer" }).isEnabled(), true);
        await page.keyboard.press("ArrowLeft");
        await page.getByRole("heading", { name: "Trade 25" }).waitFor();
        await page.getByRole("link", { name: "Page 3" }).click();
        await eventually(() => page.locator("tr.marked").getAttribute("data-seq"), "25");
      },
    },
    {
      name: "What was erased",
      from: "/explorer/customers",
      async way(page) {
        await page.getByText("No list has customers that were erased").waitFor();
        await page.getByRole("searchbox", { name: "customerId begins with" }).fill("66");
        await page.getByRole("status").getByText(/^66 was erased on \d{4}-\d\d-\d\d \d\d:\d\d:\d\d/).waitFor();
      },
    },
    {
      name: "An append with a mistake",
      from: history,
      async way(page) {
        await page.getByRole("link", { name: "Append" }).click();
        await page.getByRole("combobox", { name: "type" }).selectOption("buy");
        await page.getByRole("textbox", { name: "ticker" }).fill("MDB");
        await page.getByRole("textbox", { name: "qty" }).fill("many");
        await page.getByRole("button", { name: "Append", exact: true }).click();
        await page.locator(".fault").first().waitFor();
        await page.getByRole("textbox", { name: "qty" }).fill("4");
        await page.getByRole("button", { name: "Append", exact: true }).click();
        await page.getByRole("link", { name: "number 221" }).waitFor();
      },
    },
    {
      name: "The same view for a colleague",
      from: history,
      async way(page, visitor) {
        // The colleague has chosen something, and sends the address.
        const other = await visitorOf(visitor.baseUrl);
        const theirs = await other.open(history);
        const seqs = (page: Page) => rows(page).evaluateAll((rows) => rows.map((row) => row.getAttribute("data-seq")));
        await theirs.getByLabel("from (UTC)").fill("2004-03-09");
        await theirs.getByLabel("to (UTC)").fill("2004-03-10");
        await theirs.getByRole("textbox", { name: "ticker" }).fill("MDB");
        await theirs.getByRole("textbox", { name: "ticker" }).press("Enter");
        await eventually(() => seqs(theirs), ["23", "19"]);
        await theirs.getByRole("combobox", { name: "Order" }).selectOption("asc");
        await eventually(() => seqs(theirs), ["19", "23"]);
        await page.goto(theirs.url());
        await eventually(() => seqs(page), ["19", "23"]);
        await other.leave();
      },
    },
    {
      name: "The newest ten of AMD on a phone",
      from: history,
      async way(page) {
        await page.getByText("Choose by time and values").click();
        await newestOfAmd(page);
      },
      options: { viewport: { width: 390, height: 844 }, hasTouch: true },
    },
  ];

  const documented = tableIn(readFileSync(join(root, "web/README.md"), "utf8"));

  test("README has all of them", () => {
    assert.deepEqual([...documented.keys()], tasks.map(({ name }) => name));
  });

  for (const { name, from, way, options } of tasks)
    test(name, async () => {
      const visitor = await visitorOf(service.baseUrl, options);
      let [clicks, fields] = [0, 0];
      await visitor.context.exposeFunction("counted", (what: string) => void (what === "click" ? clicks++ : fields++));
      await visitor.context.addInitScript(() => {
        const { counted } = globalThis as unknown as { counted: (what: string) => void };
        const typed = new WeakSet<EventTarget>();
        // What the Enter of a field does is no click.
        addEventListener("click", ({ detail }) => detail > 0 && counted("click"), true);
        addEventListener(
          "input",
          ({ target }) => {
            if (target && !typed.has(target)) counted("field");
            if (target) typed.add(target);
          },
          true,
        );
      });
      const begun = performance.now();
      await way(await visitor.open(from), visitor);
      console.log(`${name}: ${clicks} clicks, ${fields} fields, ${((performance.now() - begun) / 1000).toFixed(1)} s by a script`);
      assert.deepEqual({ clicks, fields }, documented.get(name));
      await visitor.leave();
    });
});

/** The numbers of each task. */
function tableIn(text: string): Map<string, { clicks: number; fields: number }> {
  const table = text.split("\n").slice(text.split("\n").findIndex((line) => line.startsWith("| Task |")) + 2);
  const lines = table.slice(0, table.findIndex((line) => !line.startsWith("|")));
  return new Map(
    lines.map((line) => {
      const [, name, , clicks, fields] = line.split("|").map((part) => part.trim());
      return [name!, { clicks: Number(clicks), fields: Number(fields) }];
    }),
  );
}
