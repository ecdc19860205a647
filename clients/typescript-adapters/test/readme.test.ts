import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { root } from "../../typescript/test/service.js";

const examples = [...readFileSync(join(root, "clients/typescript/README.md"), "utf8").matchAll(/^```tsx\n(import .*?)^```$/gms)].map(([, code]) => code!);

/** What the examples take for granted. */
const GIVEN = `
import { history, historyKey, trades } from "@pagebucket/client";
import { useQuery } from "@tanstack/react-query";
import { rowPaginationFeature, rowSortingFeature, tableFeatures } from "@tanstack/react-table";
import type { SortingState } from "@tanstack/react-table";
const service = { baseUrl: "http://127.0.0.1:8080" };
const mine = trades(service, 7);
const showError = (error: unknown) => console.log(error);
const [TradeList, TradeCreate] = [() => null, () => null];
declare const element: HTMLElement;
const features = tableFeatures({ rowPaginationFeature, rowSortingFeature });
const columns = [{ accessorKey: "ticker" }];
const none: { seq: number; ticker: string }[] = [];
const [pagination, sorting] = [{ pageIndex: 0, pageSize: 10 }, [] as SortingState];
`;

/** react-admin has what ra-core has, with a design. */
const REACT_ADMIN = `declare module "react-admin" { export { CoreAdmin as Admin, Resource } from "ra-core"; }`;

test("the README's examples of adapters have no type errors", () => {
  assert.equal(examples.length, 5);
  const directory = join(root, "clients/typescript-adapters/build/readme");
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory, { recursive: true });
  const flags = { noUnusedLocals: false };
  writeFileSync(join(directory, "tsconfig.json"), JSON.stringify({ extends: "../../tsconfig.json", compilerOptions: flags, include: ["."] }));
  writeFileSync(join(directory, "react-admin.d.ts"), REACT_ADMIN);
  for (const [number, code] of examples.entries()) {
    const given = code.includes("const columns =") ? GIVEN.replace(/^const columns.*$/m, "") : GIVEN;
    writeFileSync(join(directory, `${number}.tsx`), given + code);
  }
  try {
    execFileSync(join(root, "clients/typescript-adapters/node_modules/.bin/tsc"), ["-p", directory], { encoding: "utf8" });
  } catch (error) {
    assert.fail((error as { stdout: string }).stdout);
  }
});
