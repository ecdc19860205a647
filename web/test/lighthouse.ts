// What Lighthouse says of the explorer, as `make measure` prints it. It is no part of the tests: its packages are many, and what it
// measures depends on how busy a machine is.

import { join } from "node:path";
import { Service } from "./service.js";

const { NODE_MODULES, CHROMIUM } = process.env;
const lighthouse = (await import(join(NODE_MODULES!, "lighthouse/core/index.js"))).default;
const { launch } = await import(join(NODE_MODULES!, "chrome-launcher/dist/index.js"));

const CATEGORIES = ["performance", "accessibility", "best-practices"];
const trade = { type: "buy", ticker: "MDB", qty: 419, price: "15.54" };

const service = await new Service().start();
const chromeFlags = ["--headless", "--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"];
const chrome = await launch({ chromePath: CHROMIUM, chromeFlags });
try {
  await service.append("/v1/customers/42/trades", new Array(9367).fill(trade));
  for (const path of ["/", "/explorer/customers/42/trades", "/explorer/customers/42/trades?page=400"]) {
    for (const preset of ["mobile", "desktop"]) {
      const { default: config } = await import(join(NODE_MODULES!, `lighthouse/core/config/${preset === "desktop" ? "desktop" : "default"}-config.js`));
      const flags = { port: chrome.port, onlyCategories: CATEGORIES, logLevel: "error" };
      const { lhr } = await lighthouse(service.baseUrl + path, flags, config);
      const scores = CATEGORIES.map((name) => `${name} ${Math.round(lhr.categories[name].score * 100)}`);
      console.log(`${path} (${preset}): ${scores.join(", ")}`);
      // What takes from a score.
      for (const name of CATEGORIES)
        for (const { id, weight } of lhr.categories[name].auditRefs) {
          const { score, displayValue = "", title, details } = lhr.audits[id];
          if (!(weight > 0 && score !== null && score < 0.9)) continue;
          console.log(`  ${name}: ${title} ${displayValue}`);
          for (const { node } of details?.items ?? []) if (node) console.log(`    ${node.snippet}`);
        }
    }
  }
} finally {
  await chrome.kill();
  await service.remove();
}
