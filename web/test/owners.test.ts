// Owners are found by the beginning of their ids, and shown with what became of their histories.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import ts from "typescript";

import { eventually, launch, root, Service, skip, Visitor } from "./service.js";

interface Owners {
  items: Record<string, unknown>[];
  links: { next?: string };
}

interface OwnerSearch {
  spansOf(schema: object, beginning: string): { after: string; has(id: string): boolean }[];
  ownersBeginning(outline: object, beginning: string, limit: number, list: (after: string, limit: number) => Promise<Owners>): Promise<{ items: Owners["items"]; more: boolean }>;
}

/** The module as it is, without its types: it imports nothing else. */
async function ownerSearch(): Promise<OwnerSearch> {
  const source = readFileSync(join(root, "web/src/api/owner-search.ts"), "utf8");
  const { outputText } = ts.transpileModule(source, { compilerOptions: { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 } });
  return import(`data:text/javascript,${encodeURIComponent(outputText)}`);
}

const KINDS = {
  integer: { schema: { type: "integer" }, order: (one: string, other: string) => Number(one) - Number(other) },
  string: { schema: { type: "string" }, order: (one: string, other: string) => (one < other ? -1 : 1) },
  uuid: { schema: { type: "string", format: "uuid" }, order: (one: string, other: string) => (one < other ? -1 : 1) },
};

/** Ids that lie close together, and some that do not. */
const IDS: Record<keyof typeof KINDS, string[]> = {
  integer: ["1", "2", "9", "10", "11", "12", "19", "20", "99", "100", "119", "120", "129", "130", "1200", "1299", "1300", "12345678901234", "9007199254740991"],
  string: ["-", "--", "0", "A", "Z", "Za", "a", "a-", "a0", "aZ", "aa", "ab", "ab-1", "abz", "ac", "b", "z", "zz", "a".repeat(64), `ab${"z".repeat(62)}`],
  uuid: ["00000000-0000-0000-0000-000000000000", "00000000-0000-0000-0000-000000000001", "018f3c6e-7b1a-7c3d-9e2f-0123456789ab", "018f3c6e-7b1b-7c3d-9e2f-0123456789ab", "ffffffff-ffff-ffff-ffff-ffffffffffff"],
};

suite("owners by the beginning of their ids", () => {
  for (const [kind, { schema, order }] of Object.entries(KINDS)) {
    test(`are found in lists of ${kind} ids, whatever the beginning and the page`, async () => {
      const { ownersBeginning } = await ownerSearch();
      const all = IDS[kind as keyof typeof KINDS].toSorted(order);
      let requests = 0;
      const list = async (after: string, limit: number) => {
        requests++;
        assert.ok(limit >= 1 && limit <= 100, `${limit}`);
        const later = all.filter((id) => after === "" || order(id, after) > 0);
        const items = later.slice(0, limit).map((id) => ({ id }));
        return { items, links: later.length > limit ? { next: `/v1/owners?after=${items.at(-1)!.id}&limit=${limit}` } : {} };
      };
      const beginnings = new Set(all.flatMap((id) => Array.from(id, (_, length) => id.slice(0, length + 1))));
      for (const beginning of [...beginnings, "7", "y", "8f"]) {
        for (const limit of [2, 50]) {
          requests = 0;
          const expected = all.filter((id) => id.startsWith(beginning));
          const { items, more } = await ownersBeginning({ ownerField: "id", ownerSchema: schema }, beginning, limit, list);
          const found = items.map(({ id }) => id);
          assert.deepEqual(found, expected.slice(0, limit), `${beginning}, ${limit}`);
          if (expected.length > limit) assert.equal(more, true, `${beginning}, ${limit}`);
          assert.ok(requests <= 17, `${beginning}: ${requests} requests`);
        }
      }
    });
  }

  test("no request is made for what begins no id", async () => {
    const { spansOf } = await ownerSearch();
    for (const [kind, beginning] of [["integer", "0"], ["integer", "a"], ["integer", "1.5"], ["string", "a_"], ["string", "é"], ["uuid", "g"], ["uuid", "018f3c6e7"]] as const)
      assert.deepEqual(spansOf(KINDS[kind].schema, beginning), [], `${kind} ${beginning}`);
    assert.equal(spansOf(KINDS.uuid.schema, "018F3C6E-7")[0]!.has("018f3c6e-7b1a-7c3d-9e2f-0123456789ab"), true);
  });
});

suite("the explorer's owners", { skip }, () => {
  let service: Service, browser: Browser;
  before(async () => {
    service = new Service();
    [browser] = await Promise.all([launch(), service.start("--allow-erase", "--retain-pages", "trades=5")]);
  });
  after(async () => {
    await browser?.close();
    await service?.remove();
  });

  const trades = (count: number) =>
    Array.from({ length: count }, (_, day) => ({ type: "buy", ticker: "MDB", qty: day + 1, date: new Date(Date.UTC(2026, 0, 1 + day)).toISOString() }));
  const ids = (page: Page) => page.locator("main tbody th").allInnerTexts();

  test("are found as their ids are typed, and show their last items, what is retired, and who is erased", async () => {
    for (const id of [3, 12, 13, 120, 129, 1200]) await service.append(`/v1/customers/${id}/trades`, trades(id === 13 ? 100 : 2));
    await eventually(async () => (await service.get("/v1/customers/13")).trades.firstPage > 1, true);
    const { firstSeq, first } = (await service.get("/v1/customers/13")).trades;
    assert.ok((await fetch(`${service.baseUrl}/v1/customers/12`, { method: "DELETE" })).ok);
    const visitor = await Visitor.of(browser, service.baseUrl);
    const page = await visitor.open("/explorer/customers");
    await eventually(() => ids(page), ["3", "13", "120", "129", "1200"]);
    await page.locator("tr", { hasText: "1200" }).getByText("last of 2026-01-02 00:00:00").waitFor();
    await page.getByText(`retired before number ${firstSeq} of ${first.date.slice(0, 10)} 00:00:00`).waitFor();
    const field = page.getByRole("searchbox", { name: "customerId begins with" });
    await field.pressSequentially("12");
    await eventually(() => ids(page), ["120", "129", "1200"]);
    await page.getByRole("status").getByText(/^12 was erased on \d{4}-\d\d-\d\d/).waitFor();
    assert.equal(new URL(page.url()).search, "?_id=12");
    await field.press("0");
    await eventually(() => ids(page), ["120", "1200"]);
    await field.fill("7");
    await page.getByText("No customerId begins with 7.").waitFor();
    await field.fill("");
    await eventually(() => ids(page), ["3", "13", "120", "129", "1200"]);
    // It is a link, too.
    await page.goto(`${service.baseUrl}/explorer/customers?_id=129`);
    await eventually(() => ids(page), ["129"]);
    await page.getByRole("link", { name: "2 trades of 129" }).click();
    await page.getByText("2 trades on 1 page of 10").waitFor();
    await visitor.leave();
  });

  test("an append with a mistake takes as many clicks as README says", async () => {
    await service.append("/v1/customers/81/trades", trades(3));
    const visitor = await Visitor.of(browser, service.baseUrl);
    const page = await visitor.open("/explorer/customers/81/trades");
    let clicks = 0;
    await page.exposeFunction("clicked", () => clicks++);
    await page.evaluate(() => addEventListener("click", ({ isTrusted }) => isTrusted && (globalThis as any).clicked(), true));
    await page.getByRole("link", { name: "Append" }).click();
    await page.getByRole("combobox", { name: "type" }).selectOption("buy");
    await page.getByRole("textbox", { name: "ticker" }).fill("MDB");
    await page.getByRole("textbox", { name: "qty" }).fill("many");
    await page.getByRole("button", { name: "Append", exact: true }).click();
    await page.locator(".fault").first().waitFor();
    await page.getByRole("textbox", { name: "qty" }).fill("4");
    await page.getByRole("button", { name: "Append", exact: true }).click();
    await page.getByRole("link", { name: "number 4" }).waitFor();
    assert.equal(clicks, 3);
    await visitor.leave();
  });
});
