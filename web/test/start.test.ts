// How the explorer starts, and how it goes on when the service, the browser or the network does less than usual.

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite, test } from "node:test";
import { gzipSync } from "node:zlib";
import { chromium } from "playwright-core";

import { BROWSER_ARGUMENTS, eventually, PATIENCE, Service, skip, stage } from "./service.js";

/** Bytes of what says which histories there are and what one of them is, as a browser gets them. */
const MOST_CATALOG = 20_000;

/** `readingsab`: the names in the document of tests are letters. */
const nameOf = (number: number) => `readings${"abcdef"[number % 6]}${"abcdef"[Math.floor(number / 6)]}`;

/** A history of 30 columns, with descriptions. */
function wide(number: number) {
  const columns = Array.from({ length: 29 }, (_, index) => {
    const description = `What the device says as value ${index} of kind ${number}: chapter ${index * 7 + number} of its handbook.`;
    return [`value${index}Of${number}`, { type: "string", maxLength: 10 + index, description }] as const;
  });
  return {
    history: nameOf(number),
    title: `Reading${number}`,
    owner: { collection: "devices", field: "deviceId", type: "string" },
    pageSize: 20,
    date: "at",
    item: {
      type: "object",
      description: `Readings of kind ${number}. ${"They are kept for the auditors. ".repeat(50)}`,
      additionalProperties: false,
      properties: { ...Object.fromEntries(columns), at: { type: "string", format: "date-time" } },
    },
  };
}

suite("the explorer's start", { skip }, () => {
  const { service, visitorOf, visit } = stage([wide(1), wide(2)], "--allow-erase");

  test("the button of a sample says to whom its items are appended", visit(async (visitor) => {
    const page = await visitor.open("/");
    await page.getByRole("button", { name: "Load sample messages for room 7f3a2c" }).waitFor();
    await page.getByRole("button", { name: "Load sample trades for customer 7" }).click();
    await page.waitForURL("**/explorer/customers/7/trades");
    await page.getByText("25 trades on 3 pages of 10").waitFor();
  }));

  test("it is there before the service has said what it keeps, and says what it waits for", visit(async (visitor) => {
    const page = await visitor.open("/livez");
    let answer = () => {};
    const asked = new Promise<void>((resolve) => (answer = resolve));
    await page.route("**/histories.json", async (route) => {
      await asked;
      await route.continue();
    });
    await page.goto(`${service.baseUrl}/explorer/customers`);
    await page.getByRole("status").getByText("Asking the service which histories it keeps").waitFor();
    await page.getByRole("switch", { name: "Read only" }).waitFor();
    answer();
    await page.getByRole("heading", { name: "Customers" }).waitFor();
  }));

  test("what the first view of a history waits for is asked for at once, and once", visit(async (visitor) => {
    await service.append("/v1/customers/9/trades", [{ type: "buy", ticker: "MDB", qty: 1 }]);
    const page = await visitor.open("/livez");
    const needed = ["/histories/trades.json", "/v1/customers/9"];
    const asked: string[] = [];
    let release = () => {};
    const all = new Promise<void>((resolve) => (release = resolve));
    page.on("request", (request) => {
      asked.push(new URL(request.url()).pathname);
      if (needed.every((path) => asked.includes(path))) release();
    });
    // Neither of them waits for the catalogue.
    await page.route("**/histories.json", async (route) => {
      await all;
      await route.continue();
    });
    await page.goto(`${service.baseUrl}/explorer/customers/9/trades`);
    await page.locator("tr[data-seq='1']").waitFor();
    const requests = asked.filter((path) => ["/histories.json", ...needed].includes(path));
    assert.deepEqual(requests, ["/histories.json", ...needed], "each once, and the catalogue first: all wait for it");
    // Later it is read anew.
    await service.append("/v1/customers/9/trades", [{ type: "buy", ticker: "MDB", qty: 2 }]);
    await page.getByRole("link", { name: "9", exact: true }).click();
    await page.getByText("2 trades on 1 page").waitFor();
  }));

  test("what could not be read is read again when the service is back, without a click", visit(async (visitor) => {
    const page = await visitor.open("/explorer/customers");
    await page.getByRole("link", { name: "25 trades of 7" }).waitFor();
    await service.stop();
    await page.getByRole("link", { name: "7", exact: true }).click();
    const problem = page.getByRole("alert").getByText("The service was not reached");
    await problem.waitFor();
    await page.getByText("It is read again by itself").waitFor();
    await service.start();
    await page.getByText("25 trades").first().waitFor();
    assert.equal(await problem.count(), 0);

    // And so is what it keeps, if it stops before the page has asked.
    await page.route("**/histories.json", (route) => route.abort());
    await page.goto(`${service.baseUrl}/explorer/customers`);
    await problem.waitFor();
    await page.unroute("**/histories.json");
    await page.getByRole("link", { name: "25 trades of 7" }).click();

    // Meanwhile the items of before are not said to be those that were asked for.
    const seqs = () => page.locator("tr[data-seq]").evaluateAll((rows) => rows.map((row) => Number(row.getAttribute("data-seq"))));
    await eventually(seqs, [25, 24, 23, 22, 21, 20, 19, 18, 17, 16]);
    await page.route("**/trades?*", (route) => route.abort());
    await page.getByRole("button", { name: "Next: older" }).click();
    await problem.waitFor();
    assert.equal(await page.getByText(/^numbers /).count(), 0);
    await page.getByText("Download").click();
    assert.equal(await page.getByRole("button", { name: "what is shown" }).first().isDisabled(), true);
    await page.unroute("**/trades?*");
    await eventually(seqs, [15, 14, 13, 12, 11, 10, 9, 8, 7, 6]);
    await page.getByText("numbers 6 to 15").waitFor();
  }));

  test("it starts where the browser keeps nothing", async () => {
    // As a user forbids it in the settings of the browser: then even to name the storage fails.
    const profile = mkdtempSync(join(tmpdir(), "pagebucket-profile-"));
    mkdirSync(join(profile, "Default"));
    const forbidden = { profile: { default_content_setting_values: { cookies: 2 } } };
    writeFileSync(join(profile, "Default", "Preferences"), JSON.stringify(forbidden));
    const context = await chromium.launchPersistentContext(profile, { executablePath: process.env["CHROMIUM"]!, args: BROWSER_ARGUMENTS });
    try {
      context.setDefaultTimeout(PATIENCE);
      const page = await context.newPage();
      const errors: string[] = [];
      page.on("pageerror", (error) => errors.push(String(error)));
      await page.goto(`${service.baseUrl}/explorer/rooms/den/messages?_tab=append`);
      const forbids = await page.evaluate(() => {
        try {
          return !localStorage;
        } catch {
          return true;
        }
      });
      assert.equal(forbids, true, "the control: this browser keeps nothing");
      await page.getByRole("textbox", { name: "author" }).fill("ann");
      await page.getByRole("textbox", { name: "text" }).fill("Stored.");
      await page.getByRole("button", { name: /^Colours: system/ }).click();
      await eventually(() => page.evaluate(() => document.documentElement.style.colorScheme), "light");
      await page.getByRole("button", { name: "Append", exact: true }).click();
      await page.getByRole("link", { name: "number 1" }).waitFor();
      await page.getByRole("switch", { name: "Read only" }).click();
      await page.getByText("This browser only reads").waitFor();
      assert.deepEqual(errors, []);
    } finally {
      await context.close();
      rmSync(profile, { recursive: true });
    }
  });

  test("whoever only reads sees nothing that stores, and an append says that it stays", visit(async (visitor) => {
    const page = await visitor.open("/explorer/customers/7/trades?_tab=append");
    await page.getByText("What is appended stays: it can be neither changed nor taken back.").waitFor();
    const only = page.getByRole("switch", { name: "Read only" });
    await only.focus();
    await page.keyboard.press("Space");
    await page.getByText("This browser only reads").waitFor();
    assert.equal(await only.getAttribute("aria-checked"), "true");
    assert.equal(await page.getByRole("link", { name: "Append" }).count(), 0);
    assert.equal(await page.locator("main form.append").count(), 0);
    await page.goto(`${service.baseUrl}/explorer/customers/8/trades`);
    await page.getByText("There are no trades yet.").waitFor();
    assert.equal(await page.getByRole("link", { name: "Append" }).count(), 0);
    await page.goto(service.baseUrl);
    await page.getByText("Nothing is stored yet.").first().waitFor();
    assert.equal(await page.getByRole("button", { name: /^Load sample/ }).count(), 0);
    await only.click();
    await page.getByRole("button", { name: /^Load sample/ }).first().waitFor();
  }));

  test("pointing at a month without items opens nothing", visit(async (visitor) => {
    const trade = (month: string) => ({ type: "buy", ticker: "MDB", qty: 1, date: `2026-${month}-05T00:00:00Z` });
    await service.append("/v1/customers/31/trades", ["01", "02", "12"].map(trade));
    const page = await visitor.open("/explorer/customers/31/trades?_tab=chart&by=1M&tz=UTC");
    const { x, y, width, height } = (await page.locator(".u-over").boundingBox())!;
    const at = (side: number) => [x + width * side, y + height - 10] as const;
    const address = page.url();
    for (const side of [0.4, 0.75]) {
      await page.mouse.move(...at(side));
      await page.getByText("Point at the chart").waitFor();
      await page.mouse.click(...at(side));
    }
    // The click that opens something comes after those that must not.
    await page.mouse.move(...at(0.975));
    await page.locator("output", { hasText: "2026-12: 1 trade" }).waitFor();
    assert.equal(page.url(), address);
    await page.mouse.click(...at(0.975));
    await eventually(() => page.locator("tr[data-seq]").evaluateAll((rows) => rows.map((row) => row.getAttribute("data-seq"))), ["3"]);
  }));

  test("an erased owner is a sentence with its date", visit(async (visitor) => {
    await service.append("/v1/customers/66/trades", [{ type: "buy", ticker: "MDB", qty: 1 }]);
    assert.ok((await fetch(`${service.baseUrl}/v1/customers/66`, { method: "DELETE" })).ok);
    for (const path of ["/explorer/customers/66", "/explorer/customers/66/trades", "/explorer/customers/66/trades/1"]) {
      const page = await visitor.open(path);
      await page.getByRole("status").getByText(/^Erased on \d{4}-\d\d-\d\d \d\d:\d\d:\d\d/).waitFor();
      assert.equal(await page.getByRole("alert").count(), 0, path);
      await page.close();
    }
  }));

  test("what it learns of the service is short, whatever the definitions", async () => {
    for (const more of [0, 25]) {
      const many = new Service();
      for (let number = 1; number <= 2 + more; number++) many.define(wide(number));
      await many.start();
      try {
        const visitor = await visitorOf(many.baseUrl);
        const page = await visitor.open("/livez");
        const session = await page.context().newCDPSession(page);
        await session.send("Network.enable");
        const read = new Map<string, string>();
        let bytes = 0;
        session.on("Network.responseReceived", ({ requestId, response }) => {
          const { origin, pathname } = new URL(response.url);
          if (origin === many.baseUrl && !/^\/(assets|v1|icon|favicon|explorer)/.test(pathname)) read.set(requestId, pathname);
        });
        session.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => {
          if (read.has(requestId)) bytes += encodedDataLength;
        });
        await page.goto(`${many.baseUrl}/explorer/devices/a/${nameOf(1)}`);
        await page.locator("main .empty").waitFor();
        const definitions = 5 + more;
        const document = await (await fetch(`${many.baseUrl}/openapi.json`)).arrayBuffer();
        console.log(
          `with ${definitions} definitions the explorer reads ${bytes} bytes of ${[...read.values()].join(", ")}; ` +
            `the OpenAPI document has ${document.byteLength}, ${gzipSync(document).length} compressed by gzip`,
        );
        assert.deepEqual([...read.values()].sort(), ["/histories.json", `/histories/${nameOf(1)}.json`]);
        assert.ok(bytes < MOST_CATALOG, `${bytes}`);
        await visitor.leave();
      } finally {
        await many.remove();
      }
    }
  });
});
