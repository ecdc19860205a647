import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";

import { append, trades } from "@pagebucket/client";

import { Browser } from "../../typescript/test/browser.js";
import { RealService } from "../../typescript/test/service.js";
import type {} from "./pages/grid.js";
import { directory, site, why } from "./site.js";
import { manyTrades } from "./walk.js";

const GRIDS = { "ag-grid": "ag-grid.ts", "ag-grid-infinite": "ag-grid-infinite.ts", "mui-x": "mui-x.tsx" };

suite("grids in a browser", { skip: why }, () => {
  let service: RealService, pages: Awaited<ReturnType<typeof site>>, browser: Browser;
  let customers = 0;
  before(async () => {
    const modules = Object.values(GRIDS).map((page) => join(directory, "test/pages", page));
    [service, pages, browser] = await Promise.all([new RealService().start(), site(modules), Browser.open()]);
  });
  after(async () => {
    await browser?.close();
    pages?.close();
    await service?.remove();
  });

  for (const name of Object.keys(GRIDS)) {
    const open = async () => {
      await browser.go(`${pages.origin}/${name}`);
      await browser.until("globalThis.walk !== undefined");
      return ++customers;
    };

    test(`${name}: walks 1,000 pages while another client appends`, async () => {
      const customer = await open();
      await browser.value(`{ globalThis.faults = walk("${service.baseUrl}", ${customer}); }`);
      for (let pages = 100; pages <= 1000; pages += 100) await browser.until(`walked.length >= ${pages} || errors.length > 0`);
      assert.deepEqual(await browser.value("errors"), []);
      assert.deepEqual(await browser.value("faults"), []);
      assert.deepEqual(browser.uncaught, []);
    });

    test(`${name}: shows one moment until it is refreshed, appends, and refuses what a history cannot do`, async () => {
      const customer = await open();
      const others = trades(service, customer);
      await append(others, manyTrades(25));
      await browser.run((baseUrl, customer) => show(baseUrl, customer), service.baseUrl, customer);
      const shows = (page: number, seqs: number[], total: number) => browser.until(`JSON.stringify(grid.shown()) == '${JSON.stringify({ page, seqs, total })}'`);
      await shows(0, [25, 24, 23, 22, 21, 20, 19, 18, 17, 16], 25);
      await append(others, manyTrades(1));
      await browser.value("grid.go(2)");
      await shows(2, [5, 4, 3, 2, 1], 25);
      /** Does something, and looks at the first and the third page, oldest first. */
      const showsAfter = async (action: string, total: number) => {
        await browser.value(action);
        await browser.value("grid.go(0)");
        await shows(0, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10], total);
        await browser.value("grid.go(2)");
        await shows(2, [21, 22, 23, 24, 25, 26, 27].slice(0, total - 20), total);
      };
      await showsAfter("grid.sort('seq', 'asc')", 25);
      await showsAfter("grid.refresh()", 26);
      await showsAfter("grid.create({ type: 'buy', ticker: 'AMD', qty: 448 }).then(grid.refresh)", 27);

      const refused = async (what: string, message: string) => {
        await browser.value(`errors.length = 0, ${what}`);
        await browser.until(`errors[0] == ${JSON.stringify(message)}`);
      };
      await refused("grid.sort('price', 'asc')", "rows by offset have no sorting by anything but seq: price");
      await refused("grid.sort('seq', 'asc'), grid.filter('price', '15')", "rows by offset have no filter by: price");
      if (name !== "mui-x") return;
      const edited = await browser.value("grid.edit().catch(({ message }) => message)");
      assert.equal(edited, "a history is append-only: its items are never changed or deleted");
    });
  }
});
