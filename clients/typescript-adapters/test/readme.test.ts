import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";

import { append, newest, trades } from "@pagebucket/client";

import { Browser } from "../../typescript/test/browser.js";
import { RealService, root } from "../../typescript/test/service.js";
import { directory, site, why } from "./site.js";
import { manyTrades } from "./walk.js";

/** The examples, each by the adapter that it imports. */
const examples = new Map(
  [...readFileSync(join(root, "clients/typescript/README.md"), "utf8").matchAll(/^```tsx\n(import .*?)^```$/gms)].map(([, code]) => [
    /client\/adapters\/([\w-]+)"/.exec(code!)![1]!,
    code!,
  ]),
);

const printed = join(directory, "build/readme");

/** Writes the examples as printed, except for the address of the service. What one exports as a component is shown. */
function write(baseUrl: string): string[] {
  rmSync(printed, { recursive: true, force: true });
  mkdirSync(printed, { recursive: true });
  writeFileSync(join(printed, "tsconfig.json"), JSON.stringify({ extends: "../../tsconfig.json", include: ["."] }));
  return [...examples].map(([name, code]) => {
    writeFileSync(join(printed, `example-${name}.tsx`), code.replace("http://127.0.0.1:8080", baseUrl));
    const page = join(printed, `${name}.tsx`);
    const component = /^export const ([A-Z]\w+)/m.exec(code)?.[1];
    writeFileSync(page, component ? mounting(name, component) : `import "./example-${name}";\n`);
    return page;
  });
}

function mounting(name: string, component: string): string {
  return `import { createRoot } from "react-dom/client";
import { ${component} } from "./example-${name}";
createRoot(document.querySelector("#grid")!).render(<${component} />);
`;
}

test("the README's examples of adapters have no type errors", () => {
  assert.deepEqual([...examples.keys()], ["react-admin", "refine", "ag-grid-infinite", "ag-grid", "mui-x", "tanstack-table"]);
  write("http://127.0.0.1:8080");
  try {
    execFileSync(join(directory, "node_modules/.bin/tsc"), ["-p", printed], { encoding: "utf8" });
  } catch (error) {
    assert.fail((error as { stdout: string }).stdout);
  }
});

suite("the README's examples of adapters in a browser", { skip: why }, () => {
  let service: RealService, pages: Awaited<ReturnType<typeof site>>, browser: Browser;
  before(async () => {
    [service, browser] = await Promise.all([new RealService().start(), Browser.open()]);
    pages = await site(write(service.baseUrl));
    await append(trades(service, 7), manyTrades(24));
    await append(trades(service, 7), { type: "sell", ticker: "AMD", qty: 448 });
  });
  after(async () => {
    await browser?.close();
    pages?.close();
    await service?.remove();
  });

  /** The numbers and tickers of the first rows, as the page has them. */
  const ROWS = `[...document.querySelectorAll("tbody tr, [role=row][row-id], .MuiDataGrid-row")].map((row) =>
    [...row.querySelectorAll("td, [role=gridcell]")].map((cell) => cell.innerText.trim()).filter(Boolean))`;
  /** Waits until these are the numbers of the first rows. */
  const shows = (...seqs: number[]) => browser.until(`${ROWS}.map((cells) => cells[0]).slice(0, ${seqs.length}).join() == "${seqs}"`);
  const show = async (name: string) => {
    await browser.go(`${pages.origin}/${name}`);
    await shows(25, 24, 23);
    assert.equal(await browser.value(`${ROWS}[0].includes("AMD")`), true);
  };
  const click = (text: string) => browser.value(`[...document.querySelectorAll("button")].find(({ innerText }) => innerText == "${text}").click()`);

  for (const name of examples.keys()) {
    test(`${name}: the newest trades are shown`, async () => {
      await show(name);
      assert.deepEqual(browser.uncaught, []);
    });
  }

  for (const name of ["refine", "tanstack-table"]) {
    test(`${name}: the button leads to older trades`, async () => {
      await show(name);
      await click("Older");
      await shows(15, 14, 13);
    });
  }

  test("react-admin: filters narrow the list, the head of a column turns it, and the form appends", async () => {
    await show("react-admin");
    /** Types into an input, as React notices it. */
    const type = (label: string, text: string) =>
      browser.value(`{
        const label = [...document.querySelectorAll("label")].find(({ innerText }) => innerText.startsWith("${label}"));
        const input = document.getElementById(label.htmlFor);
        Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set.call(input, "${text}");
        input.dispatchEvent(new Event("input", { bubbles: true }));
      }`);
    await type("Ticker", "AMD");
    await browser.until(`${ROWS}.length == 1 && ${ROWS}[0][0] == "25"`);
    await type("Ticker", "MDB");
    await shows(24, 23, 22);
    const range = `document.querySelector(".MuiTablePagination-displayedRows").innerText`;
    await browser.until(`${range} == "1-10 of more than 10"`);
    await browser.value(`document.querySelector("[aria-label='Go to next page']").click()`);
    await shows(14, 13, 12);
    await browser.value(`document.querySelector("[aria-label='Go to next page']").click()`);
    await browser.until(`${ROWS}.map((cells) => cells[0]).join() == "4,3,2,1" && ${range} == "21-24 of 24"`);
    await type("Ticker", "");
    await shows(25, 24, 23);
    await browser.value(`document.querySelector("th .MuiTableSortLabel-root").click()`);
    await shows(1, 2, 3);
    assert.equal(await browser.value(`document.querySelectorAll("th .MuiTableSortLabel-root").length`), 1);

    await browser.value(`document.querySelector("a[href$='/trades/create']").click()`);
    await browser.until(`document.querySelector("form input[name=qty]") !== null`);
    await browser.value(`document.querySelector("form [role=combobox]").dispatchEvent(new MouseEvent("mousedown", { bubbles: true }))`);
    await browser.until(`document.querySelector("[role=option][data-value=buy]") !== null`);
    await browser.value(`document.querySelector("[role=option][data-value=buy]").click()`);
    await type("Ticker", "DELL");
    await type("Quantity", "618");
    await browser.value(`document.querySelector("form").requestSubmit()`);
    await browser.until(`location.hash.startsWith("#/trades") && !location.hash.includes("create") && ${ROWS}.length > 0`);
    const [stored] = (await newest(trades(service, 7), 1)).items;
    assert.deepEqual([stored?.seq, stored?.type, stored?.ticker, stored?.qty], [26, "buy", "DELL", 618]);
    assert.deepEqual(browser.uncaught, []);
  });
});
