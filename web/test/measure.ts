// How fast the explorer is, as `make measure` prints it: any page of a history of 1,000,000 trades, and a chart of 10,000 points.

import { createWriteStream } from "node:fs";
import { join } from "node:path";
import { once } from "node:events";
import type { Page } from "playwright-core";
import { framesPanned } from "./frames.js";
import { launch, Service, Visitor } from "./service.js";

const TRADES = Number(process.env["TRADES"] ?? 1_000_000);
const PAGES = 50;
const TICKERS = ["ACME", "AMD", "MDB", "ZETA-A"];

/** A file with one trade a minute. */
async function tradesFile(directory: string): Promise<string> {
  const path = join(directory, "trades.ndjson");
  const file = createWriteStream(path);
  for (let index = 0; index < TRADES; index++) {
    const price = (20 + (index % 77) / 4).toFixed(2);
    const date = new Date(Date.UTC(2024, 0, 1) + index * 60_000).toISOString();
    const line = `${JSON.stringify({ type: "buy", ticker: TICKERS[index % 4], qty: 1 + (index % 900), price, date })}\n`;
    if (!file.write(line)) await once(file, "drain");
  }
  file.end();
  await once(file, "finish");
  return path;
}

/** For each page, milliseconds from the choice of its number until its items are drawn. */
function visit(page: Page, numbers: number[]): Promise<number[]> {
  return page.evaluate(async (numbers) => {
    const field = document.querySelector<HTMLInputElement>(".pages input[type=number]")!;
    const times: number[] = [];
    for (const number of numbers) {
      field.value = String(number);
      field.dispatchEvent(new Event("input", { bubbles: true }));
      await new Promise(requestAnimationFrame);
      const begun = performance.now();
      field.form!.requestSubmit();
      while (!document.querySelector(`tr[data-seq="${number * 10}"]`)) await new Promise(requestAnimationFrame);
      times.push(performance.now() - begun);
    }
    return times;
  }, numbers);
}

/** How many answers the network has carried, and how many the browser's cache. */
function answers(page: Page): Promise<{ network: number; cache: number }> {
  return page.evaluate(() => {
    const pages = (performance.getEntriesByType("resource") as PerformanceResourceTiming[]).filter(({ name }) => name.includes("/pages/"));
    const cache = pages.filter(({ transferSize }) => transferSize === 0).length;
    performance.clearResourceTimings();
    return { network: pages.length - cache, cache };
  });
}

function words(times: number[]): string {
  const sorted = times.toSorted((one, other) => one - other);
  const [median, most] = [sorted[Math.floor(sorted.length / 2)]!, sorted.at(-1)!];
  return `median ${median.toFixed(0)} ms, longest ${most.toFixed(0)} ms`;
}

const service = new Service();
const browser = await launch();
try {
  service.command("import", "--history", "trades", "--owner", "42", await tradesFile(service.directory));
  await service.start();
  const visitor = await Visitor.of(browser, service.baseUrl);
  const page = await visitor.open("/explorer/customers/42/trades?page=1");
  const total = await page.locator("[data-total]").getAttribute("data-total");
  await page.locator("tr[data-seq]").first().waitFor();
  const numbers = Array.from({ length: PAGES }, (_, index) => 2 + ((index * 7919 * 31) % (TRADES / 10 - 2)));
  await answers(page);
  for (const turn of ["first", "second"]) {
    const times = await visit(page, numbers);
    const { network, cache } = await answers(page);
    console.log(`${turn} visit of ${PAGES} pages of ${total} trades: ${words(times)}; ${network} requests, ${cache} answers of the browser's cache`);
    await page.goto(`${service.baseUrl}/explorer/customers/42/trades?page=1`);
    await page.locator("tr[data-seq]").first().waitFor();
    await answers(page);
  }
  await page.goto(`${service.baseUrl}/explorer/customers/42/trades?_tab=chart&_measure=price&_split=ticker&_most=10000`);
  await page.getByText("10,000 of ").waitFor();
  console.log(`10,000 points pan at ${await framesPanned(page)} frames/s`);
  const begun = performance.now();
  await page.goto(`${service.baseUrl}/explorer/customers/42/trades?_tab=chart`);
  await page.locator("figcaption").waitFor();
  const made = await page.locator("figcaption .quiet").innerText();
  console.log(`a chart of ${made} is there after ${((performance.now() - begun) / 1000).toFixed(1)} s`);
  await visitor.leave();
} finally {
  await browser.close();
  await service.remove();
}
