import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { pathToFileURL } from "node:url";

import { transform } from "esbuild";

import { RealService, skip } from "./service.js";

const root = join(import.meta.dirname, "..");
const [quickStart, ...examples] = [...readFileSync(join(root, "README.md"), "utf8").matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code]) => code!);

// Below the package, so that its name means this package.
const directory = join(import.meta.dirname, "readme");

/** What the examples after the quick start take for granted. */
const GIVEN = `
import { all, append, history, item, list, newKey, page, pages, ProblemError, trades, windows } from "@pagebucket/client";
const service = { baseUrl: "http://127.0.0.1:8080" };
const mine = trades(service, 7);
export const given = { all, history, item, list, newKey, page, pages, ProblemError, windows, mine, service };
`;

test("the examples of the README have no type errors", () => {
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory);
  const flags = { noEmit: true, noUnusedLocals: false, rootDir: "." };
  writeFileSync(join(directory, "tsconfig.json"), JSON.stringify({ extends: "../../tsconfig.json", compilerOptions: flags, include: ["."] }));
  writeFileSync(join(directory, "quick-start.ts"), quickStart!);
  assert(examples.length >= 7, `${examples.length}`);
  for (const [number, code] of examples.entries()) writeFileSync(join(directory, `${number}.ts`), GIVEN + code);
  try {
    execFileSync(join(root, "node_modules/.bin/tsc"), ["-p", directory], { encoding: "utf8" });
  } catch (error) {
    assert.fail((error as { stdout: string }).stdout);
  }
});

suite("the quick start of the README", { skip }, () => {
  let service: RealService;
  before(async () => {
    service = await new RealService().start();
  });
  after(() => service.remove());

  test("does what it says", async (t) => {
    const { code } = await transform(quickStart!.replace("http://127.0.0.1:8080", service.baseUrl), { loader: "ts" });
    const program = join(directory, "quick-start.js");
    writeFileSync(program, code);
    const printed = t.mock.method(console, "log", () => {});
    await import(pathToFileURL(program).href);
    const lines = printed.mock.calls.map(({ arguments: words }) => (words as unknown[]).join(" "));
    assert.deepEqual(lines, ["stored as number 1", "1 trades, the newest is of AMD", "page 1 has 1", "1 448"]);
  });
});
