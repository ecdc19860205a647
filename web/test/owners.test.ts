// Owners are found by the beginning of their ids, and shown with what became of their histories.

import assert from "node:assert/strict";
import { suite, test } from "node:test";
import type { Page } from "playwright-core";

import { withTotals, type OwnerNews } from "../src/api/news.js";
import { ownersBeginning, spansOf } from "../src/api/owner-search.js";
import { violationsOf } from "./axe.js";
import { eventually, skip, stage } from "./service.js";

const KINDS = {
  integer: { schema: { type: "integer" }, order: (one: string, other: string) => Number(one) - Number(other) },
  string: { schema: { type: "string" }, order: (one: string, other: string) => (one < other ? -1 : Number(one > other)) },
  uuid: { schema: { type: "string", format: "uuid" }, order: (one: string, other: string) => (one < other ? -1 : Number(one > other)) },
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

  test("no request is made for what begins no id", () => {
    for (const [kind, beginning] of [["integer", "0"], ["integer", "a"], ["integer", "1.5"], ["integer", "9007199254740992"], ["integer", "1".repeat(400)], ["string", "a_"], ["string", "é"], ["uuid", "g"], ["uuid", "018f3c6e7"]] as const)
      assert.deepEqual(spansOf(KINDS[kind].schema, beginning), [], `${kind} ${beginning}`);
    // A span for each number of digits that may follow, and no more.
    for (const [beginning, spans] of [["1", 16], ["90", 15], ["91", 14], ["900719925474099", 2], ["9007199254740991", 1]] as const)
      assert.equal(spansOf(KINDS.integer.schema, beginning).length, spans, beginning);
    assert.equal(spansOf(KINDS.uuid.schema, "018F3C6E-7")[0]!.has("018f3c6e-7b1a-7c3d-9e2f-0123456789ab"), true);
  });
});

test("what owners have got is counted from what they had, and who got something last stands first", () => {
  const told = (id: string, totalItems: number) => ({ id, items: "trades", totalItems });
  const totals = new Map([["trades/7", 10], ["trades/8", 20]]);
  const words = (news: OwnerNews[]) => news.map(({ id, fresh, isLeast, totalItems, at }) => `${id}: ${isLeast ? "at least " : ""}${fresh} of ${totalItems}, ${at}`);
  let news = withTotals([], { totals, isWhole: true }, [told("7", 12), told("8", 20), told("9", 3)], "first");
  assert.deepEqual(words(news), ["9: 3 of 3, first", "7: 2 of 12, first"], "8 has nothing new, and 9 had nothing");
  news = withTotals(news, { totals, isWhole: true }, [told("7", 15), told("9", 3)], "second");
  assert.deepEqual(words(news), ["7: 5 of 15, second", "9: 3 of 3, first"]);
  // Of an owner whose total was not read.
  const some = { totals, isWhole: false };
  news = withTotals(withTotals([], some, [told("9", 30)], "first"), some, [told("9", 34)], "second");
  assert.deepEqual(words(news), ["9: at least 5 of 34, second"]);
});

suite("the explorer's owners", { skip }, () => {
  const { service, visit } = stage([], "--allow-erase");

  const trades = (count: number) =>
    Array.from({ length: count }, (_, day) => ({ type: "buy", ticker: "MDB", qty: day + 1, date: new Date(Date.UTC(2026, 0, 1 + day)).toISOString() }));
  const ids = (page: Page) => page.locator("main tbody th").allInnerTexts();

  test("are found as their ids are typed, and show their last items, and who is erased", visit(async (visitor) => {
    for (const id of [3, 12, 13, 120, 129, 1200]) await service.append(`/v1/customers/${id}/trades`, trades(2));
    assert.ok((await fetch(`${service.baseUrl}/v1/customers/12`, { method: "DELETE" })).ok);
    const page = await visitor.open("/explorer/customers");
    await eventually(() => ids(page), ["3", "13", "120", "129", "1200"]);
    await page.locator("tr", { hasText: "1200" }).getByText("last of 2026-01-02 00:00:00").waitFor();
    const field = page.getByRole("searchbox", { name: "customerId begins with" });
    await field.pressSequentially("12");
    await eventually(() => ids(page), ["120", "129", "1200"]);
    await page.getByRole("status").getByText(/^12 was erased on \d{4}-\d\d-\d\d/).waitFor();
    assert.equal(new URL(page.url()).search, "?_id=12");
    await field.press("0");
    await eventually(() => ids(page), ["120", "1200"]);
    await field.fill("7");
    await page.getByText("No customerId begins with 7.").waitFor();
    await page.getByText("No list has customers that were erased. Type a whole customerId to see whether it was, and when.").waitFor();
    await field.fill("");
    await eventually(() => ids(page), ["3", "13", "120", "129", "1200"]);
    // It is a link, too.
    await page.goto(`${service.baseUrl}/explorer/customers?_id=129`);
    await eventually(() => ids(page), ["129"]);
    await page.getByRole("link", { name: "2 trades of 129" }).click();
    await page.getByText("2 trades on 1 page of 10").waitFor();
  }));

  test("who has something new is a list, the last ones first, with how many and the way to them", visit(async (visitor) => {
    for (const id of [701, 702, 703]) await service.append(`/v1/customers/${id}/trades`, trades(3));
    const page = await visitor.open("/");
    const customers = page.locator("section", { has: page.getByRole("heading", { name: "Customers" }) });
    await customers.getByRole("link", { name: "Who has something new" }).click();
    await page.getByText("None of the customers has got anything yet.").waitFor();
    await page.getByText(/^Customers that have got something since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC, the last ones first\./).waitFor();
    await page.locator("[data-live=stream]").waitFor();
    const rows = () => page.locator("main tbody tr").evaluateAll((rows) => rows.map((row) => Array.from((row as HTMLTableRowElement).cells).slice(0, 3).map((cell) => cell.innerText)));
    await service.append("/v1/customers/702/trades", trades(2));
    await eventually(rows, [["702", "2 trades", "5"]]);
    await service.append("/v1/customers/703/trades", trades(1));
    await eventually(rows, [["703", "1 trade", "4"], ["702", "2 trades", "5"]]);
    // One that nobody knew.
    await service.append("/v1/customers/704/trades", trades(7));
    await eventually(async () => (await rows())[0], ["704", "7 trades", "7"]);
    await service.append("/v1/customers/702/trades", trades(4));
    await eventually(async () => (await rows()).map(([id]) => id), ["702", "704", "703"]);
    assert.deepEqual((await rows())[0], ["702", "6 trades", "9"]);
    assert.deepEqual(await violationsOf(page), []);
    await page.getByRole("link", { name: "6 trades new of customer 702" }).click();
    await page.getByText("9 trades on 1 page of 10").waitFor();
    assert.equal(new URL(page.url()).pathname, "/explorer/customers/702/trades");
    // It goes on while another view is shown.
    await service.append("/v1/customers/701/trades", trades(1));
    await page.goBack();
    await eventually(async () => (await rows()).map(([id, fresh]) => `${id}: ${fresh}`), ["701: 1 trade", "702: 6 trades", "704: 7 trades", "703: 1 trade"]);
    // Meanwhile the stream may lose its place: then the list says it.
    await page.getByRole("link", { name: "1 trade new of customer 701" }).click();
    await page.getByText("4 trades on 1 page of 10").waitFor();
    await service.append("/v1/customers/703/trades", trades(2));
    const tooOld = { type: "/problems#position-too-old", title: "Too old", status: 410, detail: "Begin without it." };
    await page.route("**/v1/trades/live", (route) => route.fulfill({ status: 410, contentType: "application/problem+json", body: JSON.stringify(tooOld) }), { times: 1 });
    await page.goBack();
    await eventually(async () => (await rows())[0], ["703", "3 trades", "6"]);
  }));

  test("that nobody can say who has something new is said in words", visit(async (visitor) => {
    const page = await visitor.open("/problems");
    const problem = { type: "/problems#not-available", title: "Not available", status: 501, detail: "Without change streams this is not known." };
    await page.route("**/v1/trades/live", (route) => route.fulfill({ status: 501, contentType: "application/problem+json", body: JSON.stringify(problem) }));
    await page.goto(`${service.baseUrl}/explorer/customers?_new=on`);
    await page.getByRole("alert").getByText("Without change streams this is not known.").waitFor();
    assert.equal(await page.locator("main .loading").count(), 0);
  }));
});
