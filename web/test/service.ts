// The real service, with a private mongod, and the browser that shows it.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before } from "node:test";
import { chromium, type Browser, type BrowserContext, type BrowserContextOptions, type Page } from "playwright-core";

import { PAGEBUCKET, RealService, root } from "../../clients/typescript/test/service.js";

export { root };

const { CHROMIUM, CI } = process.env;
// In CI a test that would be skipped fails: it does not find the program.
export const skip = CI || (PAGEBUCKET && CHROMIUM) ? false : "PAGEBUCKET or CHROMIUM names no program";

/** Longer than anything takes on a slow machine. Only a failure waits for it. */
export const PATIENCE = Number(process.env["EXPLORER_PATIENCE"] ?? 120_000);

export class Service extends RealService {
  /** Serves one more history. Before the start. */
  define(definition: { history: string }): void {
    writeFileSync(join(this.directory, "histories", `${definition.history}.json`), JSON.stringify(definition));
  }

  override start(...flags: string[]): Promise<this> {
    this.flags.push(...flags);
    return super.start();
  }

  async get(path: string): Promise<any> {
    const response = await fetch(this.baseUrl + path);
    assert.ok(response.ok, `${path}: ${response.status}`);
    return response.json();
  }

  /** Appends items, as many as there are. */
  async append(path: string, items: object[]): Promise<void> {
    for (let sent = 0; sent < items.length; sent += 1000) {
      const body = JSON.stringify(items.slice(sent, sent + 1000));
      const response = await fetch(`${this.baseUrl}${path}/batch`, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body,
      });
      assert.equal(response.status, 201, await response.text());
    }
  }
}

/** Whatever the browser asks for elsewhere, it does not get. */
export const BROWSER_ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"];

export function launch(): Promise<Browser> {
  return chromium.launch({ executablePath: CHROMIUM!, args: BROWSER_ARGUMENTS });
}

/** The requests that the golden document has. Those of the other histories are as those of trades. */
function documentedRequests(): RegExp[] {
  const { paths } = JSON.parse(readFileSync(join(root, "openapi/openapi.json"), "utf8")) as { paths: Record<string, object> };
  return Object.entries(paths).flatMap(([path, methods]) => {
    const pattern = path.replace("/customers", "/[a-z]+").replace("/trades", "/[a-z]+").replace(/\{\w+\}/g, "[^/]+");
    return Object.keys(methods).map((method) => new RegExp(`^${method.toUpperCase()} ${pattern.replaceAll(".", "\\.")}$`));
  });
}

/** A visitor of the explorer: what its browser complains of is a failure. */
export class Visitor {
  readonly complaints: string[] = [];
  readonly #documented: RegExp[];

  private constructor(
    readonly context: BrowserContext,
    readonly baseUrl: string,
  ) {
    this.#documented = documentedRequests();
  }

  static async of(browser: Browser, baseUrl: string, options: BrowserContextOptions = {}): Promise<Visitor> {
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, timezoneId: "UTC", ...options });
    context.setDefaultTimeout(PATIENCE);
    return new Visitor(context, baseUrl);
  }

  async open(path: string): Promise<Page> {
    const page = await this.context.newPage();
    page.on("pageerror", (error) => this.complaints.push(String(error)));
    page.on("console", (message) => {
      // An answer that is a problem is one that the page explains.
      if (message.type() === "error" && !message.text().startsWith("Failed to load resource")) this.complaints.push(message.text());
    });
    page.on("request", (request) => {
      const { pathname } = new URL(request.url());
      const call = `${request.method()} ${pathname.slice(pathname.indexOf("/v1"))}`;
      const isCall = request.resourceType() === "fetch" && pathname.includes("/v1/");
      if (isCall && !this.#documented.some((known) => known.test(call))) this.complaints.push(`${call} is not in the API's document`);
    });
    await page.goto(this.baseUrl + path);
    return page;
  }

  async leave(): Promise<void> {
    await this.context.close();
    assert.deepEqual(this.complaints, []);
  }
}

/** For the tests of a suite: a service with these definitions and flags, and a browser, which are there when the first test runs. */
export function stage(definitions: { history: string }[] = [], ...flags: string[]) {
  const service = new Service();
  let browser: Browser | undefined;
  before(async () => {
    for (const definition of definitions) service.define(definition);
    [browser] = await Promise.all([launch(), service.start(...flags)]);
  });
  after(async () => {
    await browser?.close();
    await service.remove();
  });
  const visitorOf = (baseUrl: string, options?: BrowserContextOptions) => Visitor.of(browser!, baseUrl, options);
  /** What a test does, with a visitor of its own. Node.js names a failed test by the file that has called `test`. */
  const visit = (story: (visitor: Visitor) => Promise<void>, options?: BrowserContextOptions) => async () => {
    const visitor = await visitorOf(service.baseUrl, options);
    await story(visitor);
    await visitor.leave();
  };
  return { service, visitorOf, visit };
}

/** Waits until a function returns what is expected. */
export async function eventually<T>(what: () => Promise<T> | T, expected: T): Promise<void> {
  const deadline = performance.now() + PATIENCE;
  for (;;) {
    const value = await what();
    try {
      assert.deepEqual(value, expected);
      return;
    } catch (error) {
      if (performance.now() > deadline) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}
