// What views of items derive: functions of their arguments, without a browser. And that files of the explorer import no circle.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { suite, test } from "node:test";

import { root } from "../../clients/typescript/test/service.js";
import { arranged, moved, undeclaredIn, withChange, withWidth } from "../src/history/columns.js";
import {
  arrivedInSearch,
  arrivedOnPage,
  cursorOf,
  fillOf,
  goesToNewer,
  hasText,
  isAtNewest,
  itemSteps,
  pageView,
  progressOf,
  progressWords,
  searchSteps,
  stepWords,
  withWindow,
  type PagePlace,
} from "../src/history/view-state.js";

const seqs = (...numbers: number[]) => numbers.map((seq) => ({ seq }));
const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => from + index);

suite("a page of items", () => {
  const history = { order: "desc", rows: 10, pageSize: 10, total: 9367, newestAt: 9367, firstSeq: 1 } as const;

  test("the newest items are as many as a page has, however few the last page has", () => {
    const { after, end, page, steps } = pageView({ ...history, wanted: undefined, total: 11, newestAt: 11 });
    assert.deepEqual([after, end, page], [1, Infinity, 2]);
    assert.deepEqual(steps, { first: undefined, previous: undefined, next: { before: 2 }, last: { after: 0 } });
    assert.equal(pageView({ ...history, wanted: undefined }).after, 9357);
    // What is appended does not move them.
    assert.equal(pageView({ ...history, wanted: undefined, total: 9400 }).after, 9357);
  });

  test("steps from the newest items go on exactly where these end: every item is shown once", () => {
    /** What is shown on the way from a place to the end of the history. */
    const walk = (to: "older" | "newer", from: PagePlace, choice: Omit<Parameters<typeof pageView>[0], "wanted" | "newestAt">) => {
      const seen: number[] = [];
      for (let place: PagePlace | undefined = from; place !== undefined; ) {
        const { after, end, steps } = pageView({ ...choice, wanted: undefined, cursor: typeof place === "object" ? place : {}, newestAt: choice.total });
        const items = range(after + 1, Math.min(end, choice.total));
        assert.ok(items.length >= 1 && items.length <= choice.rows);
        if (to === "older") seen.unshift(...items);
        else seen.push(...items);
        place = (to === "older") === (choice.order === "desc") ? steps.next : steps.previous;
      }
      return seen;
    };
    for (const order of ["desc", "asc"] as const)
      for (const rows of [10, 25, 100])
        for (const [total, firstSeq] of [[9367, 1], [120, 1], [101, 1], [100, 1], [9, 1], [127, 51]] as const) {
          const choice = { order, rows, pageSize: 10, total, firstSeq };
          assert.deepEqual(walk("older", "newest", choice), range(firstSeq, total), JSON.stringify(choice));
          assert.deepEqual(walk("newer", { after: firstSeq - 1 }, choice), range(firstSeq, total), JSON.stringify(choice));
        }
    // What is newer than a window may be the newest items, which have an address of their own.
    const window = pageView({ ...history, wanted: undefined, cursor: { before: 9358 } });
    assert.deepEqual([window.after, window.end, window.steps.previous, window.steps.first], [9347, 9357, "newest", "newest"]);
    assert.deepEqual(pageView({ ...history, wanted: undefined, cursor: { before: 9358 }, total: 9370 }).steps.previous, { after: 9357 });
  });

  test("a page is asked for as it is stored, other items as a window, and nothing where there can be none", () => {
    const askedOf = (change: Partial<Parameters<typeof pageView>[0]>) => pageView({ ...history, wanted: undefined, ...change }).asked;
    assert.deepEqual(askedOf({ wanted: 937 }), { page: 937 });
    // Other rows than a page has: a window, which the browser keeps if it is complete.
    assert.deepEqual(askedOf({ wanted: 2, rows: 25 }), { after: 25, limit: 25, asOf: 50 });
    assert.deepEqual(askedOf({ wanted: 375, rows: 25 }), { after: 9350, limit: 25 });
    // The newest as they were when they were chosen, whatever has come.
    assert.deepEqual(askedOf({ total: 9400 }), { after: 9357, limit: 10, asOf: 9367 });
    assert.deepEqual(askedOf({ rows: 500 }), { after: 9267, limit: 100, asOf: 9367 });
    assert.deepEqual(askedOf({ cursor: { before: 5 } }), { after: 0, limit: 4, asOf: 4 });
    assert.deepEqual(askedOf({ cursor: { after: 9360 } }), { after: 9360, limit: 10 });
    assert.equal(askedOf({ total: 0, newestAt: 0 }), undefined);
    assert.equal(askedOf({ cursor: { before: 1 } }), undefined);
    assert.equal(askedOf({ cursor: { before: 51 }, firstSeq: 51 }), undefined);
  });

  test("how far a page is filled is known before its items are", () => {
    const lastSeqOf = (change: Partial<Parameters<typeof pageView>[0]>) => pageView({ ...history, wanted: undefined, ...change }).lastSeq;
    assert.deepEqual([lastSeqOf({}), lastSeqOf({ total: 9400 }), lastSeqOf({ total: 0, newestAt: 0 })], [9367, 9367, undefined]);
    assert.deepEqual([lastSeqOf({ wanted: 3 }), lastSeqOf({ wanted: 937 }), lastSeqOf({ wanted: 938 })], [30, 9367, undefined]);
    assert.deepEqual([lastSeqOf({ cursor: { before: 43 } }), lastSeqOf({ cursor: { after: 9360 } }), lastSeqOf({ cursor: { after: 9367 } })], [42, 9367, undefined]);
  });

  test("steps go down the list in either order, and none leads out of the history", () => {
    assert.deepEqual(pageView({ ...history, wanted: 500 }).steps, { first: "newest", previous: 501, next: 499, last: 1 });
    assert.deepEqual(pageView({ ...history, wanted: 500, order: "asc" }).steps, { first: 1, previous: 499, next: 501, last: "newest" });
    assert.deepEqual(pageView({ ...history, wanted: 1 }).steps, { first: "newest", previous: 2, next: undefined, last: undefined });
    assert.deepEqual(pageView({ ...history, wanted: 937 }).steps.previous, undefined);
    assert.deepEqual(pageView({ ...history, wanted: undefined, total: 7, newestAt: 7 }).steps, {
      first: undefined,
      previous: undefined,
      next: undefined,
      last: undefined,
    });
    assert.deepEqual(stepWords("asc"), { first: "oldest", previous: "older", next: "newer", last: "newest" });
  });

  test("a history whose beginning is deleted begins with its first page, whatever the rows of a view", () => {
    const trimmed = { ...history, firstSeq: 51 };
    assert.deepEqual([pageView({ ...trimmed, wanted: 6 }).steps.next, pageView({ ...trimmed, wanted: 6 }).first], [undefined, 6]);
    assert.equal(pageView({ ...trimmed, wanted: 3, rows: 25 }).first, 3);
    assert.equal(pageView({ ...trimmed, wanted: undefined, total: 55, newestAt: 55 }).after, 50);
  });

  test("what has come belongs to its page, and a gap before it is known", () => {
    assert.deepEqual(arrivedOnPage(seqs(8, 9, 10, 11), 8, 10), { arrived: seqs(9, 10), missed: false });
    assert.deepEqual(arrivedOnPage(seqs(12, 13), 8, Infinity), { arrived: seqs(12, 13), missed: true });
    assert.deepEqual(fillOf(9367, 10), { page: 937, held: 7 });
    assert.deepEqual(fillOf(20, 10), { page: 2, held: 10 });
  });

  test("steps from an item stay within the history", () => {
    assert.deepEqual(itemSteps("desc", 24, 1, 24), { first: undefined, previous: undefined, next: 23, last: 1 });
    assert.deepEqual(itemSteps("asc", 51, 51, 60), { first: undefined, previous: undefined, next: 52, last: 60 });
    assert.deepEqual(itemSteps("asc", 5, undefined, undefined), { first: undefined, previous: undefined, next: undefined, last: undefined });
  });
});

suite("a selection", () => {
  const path = "/v1/customers/42/trades?limit=3&order=desc&ticker=RARE";

  test("after=0 is a cursor: the beginning", () => {
    assert.deepEqual(cursorOf(`${path}&after=0`), { after: 0 });
    assert.deepEqual(cursorOf(`${path}&before=19991`), { before: 19991 });
    assert.deepEqual(cursorOf(path), {});
    assert.equal(goesToNewer({ order: "desc", after: 0 }), true);
    assert.equal(goesToNewer({ order: "desc" }), false);
  });

  test("a search towards older items goes on by next, and begins at the newest end", () => {
    const begin = { order: "desc" } as const;
    const links = { next: `${path}&before=19991`, last: `${path}&after=0` };
    const none = withWindow(begin, undefined, { items: [], links });
    assert.equal(progressWords(begin, none, 30_000), "examined from number 30,000 down to 19,991");
    assert.ok(Math.abs(progressOf(begin, none, 30_000) - 1 / 3) < 0.01);
    const one = withWindow(begin, none, { items: seqs(12_346), links: { ...links, next: `${path}&before=9991`, prev: `${path}&after=19990` } });
    assert.deepEqual(searchSteps(begin, one), { first: undefined, previous: undefined, next: { before: 9991 }, last: { after: 0 } });
    assert.equal(isAtNewest(begin, one), true);
    const { next: _, ...end } = links;
    const all = withWindow(begin, one, { items: seqs(6), links: end });
    assert.deepEqual(all.items, seqs(12_346, 6));
    assert.deepEqual(searchSteps(begin, all), { first: undefined, previous: undefined, next: undefined, last: undefined });
    assert.equal(progressOf(begin, all, 30_000), 1);
  });

  test("from the beginning, newest first, it goes on by prev, and what it finds stands above", () => {
    const begin = { order: "desc", after: 0 } as const;
    const found = withWindow(begin, undefined, { items: seqs(6), links: { prev: `${path}&after=10000` } });
    assert.equal(progressWords(begin, found, 30_000), "examined to number 10,000 of 30,000");
    assert.deepEqual(searchSteps(begin, found), { first: {}, previous: { after: 10_000 }, next: undefined, last: undefined });
    assert.equal(isAtNewest(begin, found), false);
    const more = withWindow(begin, found, { items: seqs(12_346), links: {} });
    assert.deepEqual(more.items, seqs(12_346, 6));
    assert.equal(isAtNewest(begin, more), true);
  });

  test("what has come is shown once, and only if it is chosen", () => {
    const odd = ({ seq }: { seq: number }) => seq % 2 === 1;
    assert.deepEqual(arrivedInSearch(seqs(10, 11, 12, 13), seqs(11), 9, odd), { arrived: seqs(13), missed: false });
    assert.equal(arrivedInSearch(seqs(12), [], 9, odd).missed, true);
  });

  test("a text is looked for in the values of an item, not in their names", () => {
    const item = { seq: 12, note: "Late", parts: [{ ip: "10.0.0.1" }] };
    assert.deepEqual(["late", "0.0.1", "12", "note", "parts"].map((text) => hasText(item, text)), [true, true, true, false, false]);
  });
});

suite("columns", () => {
  test("they stand as the reader has arranged them, and new ones follow", () => {
    const chosen = [{ name: "price" }, { name: "gone" }, { name: "qty", hidden: true }, { name: "date", pinned: true }];
    assert.deepEqual(
      arranged(["type", "qty", "price", "date"], chosen).map(({ name }) => name),
      ["date", "price", "qty", "type"],
    );
    const columns = [{ name: "a" }, { name: "b" }];
    assert.deepEqual(moved(columns, "b", -1), [{ name: "b" }, { name: "a" }]);
    assert.deepEqual(moved(columns, "b", 1), columns);
    assert.deepEqual(withChange(columns, "a", { hidden: true }), [{ name: "a", hidden: true }, { name: "b" }]);
    const wide = withWidth(columns, "a", 8);
    assert.deepEqual(wide, [{ name: "a", width: 8 }, { name: "b" }]);
    assert.deepEqual(withWidth(wide, "a", undefined), columns);
  });

  test("members that no schema declares are known, the most frequent first", () => {
    assert.deepEqual(undeclaredIn([{ seq: 1, a: 1, x: 1 }, { seq: 2, y: 1 }, { seq: 3, y: 2 }], ["a"]), ["y", "x"]);
  });
});

test("no file of the explorer imports a circle", () => {
  const source = join(root, "web/src");
  const files = readdirSync(source, { recursive: true, encoding: "utf8" }).filter((name) => /\.tsx?$/.test(name));
  const imports = new Map(
    files.map((name) => {
      const names = [...readFileSync(join(source, name), "utf8").matchAll(/ from "(\.[^"]*)"/g)].map(([, path]) => path!.replace(/\.js$/, ""));
      const within = names.map((path) => relative(source, join(source, dirname(name), path)));
      return [name, files.filter((file) => within.includes(file.replace(/\.tsx?$/, "")))] as const;
    }),
  );
  assert.ok([...imports.values()].flat().length > 100);
  const done = new Set<string>();
  const visit = (name: string, way: string[]) => {
    assert.ok(!way.includes(name), [...way, name].join(" → "));
    if (done.has(name)) return;
    for (const other of imports.get(name)!) visit(other, [...way, name]);
    done.add(name);
  };
  for (const name of files) visit(name, []);
  // Parts and tabs know no views.
  for (const [name, others] of imports)
    if (!/^(views\/|app|main)/.test(name)) assert.deepEqual(others.filter((other) => other.startsWith("views/")), [], name);
});
