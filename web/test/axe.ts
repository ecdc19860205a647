// What axe finds wrong with a page for assistive technology.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";

const source = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export async function violationsOf(page: Page): Promise<string[]> {
  // Not by a script element: the policy of the page refuses what is not the server's.
  await page.evaluate(`(() => { ${source} })(); undefined`);
  return page.evaluate(async () => {
    const { violations } = await (globalThis as any).axe.run(document, { resultTypes: ["violations"] });
    return violations.flatMap(({ id, nodes }: any) => nodes.map(({ html }: any) => `${id}: ${html}`));
  });
}
