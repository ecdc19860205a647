// Pictures of the explorer: `make screenshots` writes those of the documentation into docs/images, and others, to look at, into
// build/screenshots.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { launch, root, Service, Visitor } from "./service.js";

const TICKERS: [string, number][] = [
  ["ACME", 34],
  ["AMD", 96],
  ["BRK.B", 182],
  ["MDB", 240],
];

/** Prices that wander, the same in every run. */
function trades(count: number): object[] {
  let seed = 7;
  const random = () => (seed = (seed * 16807) % 2147483647) / 2147483647;
  const prices = new Map(TICKERS);
  let at = Date.UTC(2025, 5, 2, 14, 30);
  return Array.from({ length: count }, () => {
    at += Math.ceil(random() * 3_000_000);
    const [ticker] = TICKERS[Math.floor(random() * TICKERS.length)]!;
    const price = prices.get(ticker)! * (1 + (random() - 0.495) / 60);
    prices.set(ticker, price);
    const type = random() > 0.45 ? "buy" : "sell";
    return { type, ticker, qty: Math.ceil(random() * 900), price: price.toFixed(2), date: new Date(at).toISOString() };
  });
}

const VALUES = Array.from({ length: 29 }, (_, index) => `${["temperature", "pressure", "flow"][index % 3]}${Math.floor(index / 3) + 1}`);

/** A history of 30 columns. */
const WIDE = {
  history: "readings",
  title: "Reading",
  owner: { collection: "plants", field: "plantId", type: "string" },
  pageSize: 20,
  maxItemBytes: 4000,
  date: "at",
  item: {
    type: "object",
    additionalProperties: false,
    properties: { ...Object.fromEntries(VALUES.map((name) => [name, { type: "integer" }])), at: { type: "string", format: "date-time" } },
  },
};

const service = new Service();
service.define(WIDE);
await service.start();
const others = join(root, "web/build/screenshots");
mkdirSync(others, { recursive: true });
const browser = await launch();
try {
  await service.append("/v1/customers/42/trades", trades(9367));
  for (const [customer, count] of [
    [7, 24],
    [8, 1310],
    [19, 402],
    [57, 88],
  ] as const) {
    await service.append(`/v1/customers/${customer}/trades`, trades(count));
  }
  await service.append("/v1/rooms/kitchen/messages", [
    { author: "ann", text: "The plan is attached.", attachments: [{ url: "https://example.org/plan.pdf", bytes: 48213 }] },
    { author: "bob", text: "Thanks!" },
  ]);
  const history = "/explorer/customers/42/trades";
  const readings = Array.from({ length: 60 }, (_, index) => ({
    ...Object.fromEntries(VALUES.map((name, column) => [name, 1000 + ((index * 37 + column * 101) % 9000)])),
    at: new Date(Date.UTC(2026, 0, 5) + index * 60_000).toISOString(),
  }));
  await service.append("/v1/plants/north/readings", readings);
  const take = async (name: string, path: string, { width = 1280, height = 800, dark = false, directory = join(root, "docs/images") } = {}) => {
    const visitor = await Visitor.of(browser, service.baseUrl, { viewport: { width, height }, colorScheme: dark ? "dark" : "light" });
    const page = await visitor.open(path);
    await page.getByRole("heading", { level: 1 }).waitFor();
    if (path.startsWith(history) && !name.startsWith("item")) await page.locator("[data-live=stream]").waitFor();
    if (name === "chart") await page.locator(".plot canvas").waitFor();
    await page.waitForFunction(
      () => document.querySelector("table, form, canvas, dl.item") && !document.querySelector("main .loading, [aria-busy=true]"),
    );
    if (name === "form") {
      await page.getByRole("button", { name: "Fill in the example" }).click();
      await page.getByRole("textbox", { name: "author" }).fill("");
      await page.getByRole("button", { name: "Append", exact: true }).click();
      await page.locator(".fault").waitFor();
    }
    if (name === "history") {
      await page.reload();
      await page.locator(".requests summary").click();
      await page.locator(".requests").getByText("browser's cache", { exact: true }).first().waitFor();
    }
    if (name === "new") {
      await page.locator("[data-live=stream]").waitFor();
      for (const [customer, count] of [[8, 3], [57, 1], [19, 12]] as const) {
        await service.append(`/v1/customers/${customer}/trades`, trades(count));
        await page.locator("main tbody tr", { hasText: `${customer}` }).waitFor();
      }
    }
    await page.screenshot({ path: join(directory, `explorer-${name}.png`) });
    await visitor.leave();
  };
  await take("start", "/");
  await take("history", `${history}?page=400&order=asc`, { height: 860 });
  await take("chart", `${history}?_tab=chart&_measure=ohlc:price&by=1d&tz=UTC&ticker=MDB&from=2025-08-01`);
  await take("item", `${history}/4321`);
  await take("selection", `${history}?ticker=MDB&from=2025-08-01&to=2025-08-31`, { height: 860 });
  await take("form", "/explorer/rooms/kitchen/messages?_tab=append", { height: 860 });
  await take("mobile", `${history}?page=400&order=asc`, { width: 390, height: 844 });
  await take("dark", history, { dark: true });
  const toLookAt = { directory: others };
  const large = { ...toLookAt, width: 3840, height: 2160 };
  await take("4k", `${history}?_rows=50`, large);
  await take("item-4k", `${history}/4321`, large);
  await take("30-columns", "/explorer/plants/north/readings", toLookAt);
  await take("30-columns-4k", "/explorer/plants/north/readings", large);
  await take("new", "/explorer/customers?_new=on", toLookAt);
  await take("owners", "/explorer/customers", toLookAt);
  await take("owners-dark", "/explorer/customers?_id=5", { ...toLookAt, dark: true });
  await take("append", `${history}?_tab=append`, toLookAt);
  await take("item-mobile", `${history}/4321`, { ...toLookAt, width: 390, height: 1600 });
  await take("new-mobile", "/explorer/customers?_new=on", { ...toLookAt, width: 390, height: 844 });
  await take("selection-mobile", `${history}?ticker=MDB`, { ...toLookAt, width: 390, height: 844 });
} finally {
  await browser.close();
  await service.remove();
}
