// A Chromium with one page, driven by the DevTools protocol over pipes.

import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";

export const { CHROMIUM } = process.env;

/** Longer than anything takes on a slow machine. Only a failure waits for it. */
const PATIENCE = 300_000;

interface Message {
  id?: number;
  method?: string;
  params?: unknown;
  error?: unknown;
  result?: any;
}

export class Browser {
  readonly #process: ChildProcess;
  readonly #profile = mkdtempSync(join(tmpdir(), "pagebucket-browser-"));
  readonly #waiting = new Map<number, (message: Message) => void>();
  #calls = 0;
  #session: string | undefined;
  /** Exceptions that no script of the page has caught. */
  readonly uncaught: string[] = [];

  private constructor() {
    const flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update"];
    // Whatever it asks for elsewhere, it does not get.
    const rules = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1";
    const stdio = ["ignore", "ignore", "ignore", "pipe", "pipe"] as const;
    this.#process = spawn(CHROMIUM!, [...flags, rules, `--user-data-dir=${this.#profile}`, "--remote-debugging-pipe"], { stdio: [...stdio] });
    let rest = "";
    (this.#process.stdio[4] as Readable).setEncoding("utf8").on("data", (piece: string) => {
      const messages = (rest + piece).split("\0");
      rest = messages.pop()!;
      for (const message of messages) this.#take(JSON.parse(message));
    });
  }

  static async open(): Promise<Browser> {
    const browser = new Browser();
    const { targetId } = await browser.#call("Target.createTarget", { url: "about:blank" });
    const { sessionId } = await browser.#call("Target.attachToTarget", { targetId, flatten: true });
    browser.#session = sessionId;
    for (const domain of ["Page", "Runtime"]) await browser.#call(`${domain}.enable`);
    return browser;
  }

  #take(message: Message): void {
    if (message.id !== undefined) this.#waiting.get(message.id)?.(message);
    else if (message.method === "Runtime.exceptionThrown") this.uncaught.push(JSON.stringify(message.params));
  }

  async #call(method: string, params = {}): Promise<any> {
    const id = ++this.#calls;
    const answered = new Promise<Message>((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`${method}: no answer; ${this.uncaught}`)), PATIENCE);
      this.#waiting.set(id, (message) => {
        clearTimeout(timer);
        this.#waiting.delete(id);
        resolve(message);
      });
    });
    (this.#process.stdio[3] as Writable).write(`${JSON.stringify({ id, method, params, sessionId: this.#session })}\0`);
    const { error, result } = await answered;
    if (error) throw new Error(`${method}: ${JSON.stringify(error)}`);
    return result;
  }

  async go(url: string): Promise<void> {
    await this.#call("Page.navigate", { url });
    // What the page shows first may have changed the part behind "#" already.
    const address = JSON.stringify(url.split("#")[0]);
    await this.until(`location.href.split("#")[0] == ${address} && document.readyState == "complete"`);
  }

  /** The value of an expression in the page, or of its promise. */
  async value(expression: string): Promise<any> {
    const { result, exceptionDetails } = await this.#call("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
    if (exceptionDetails) throw new Error(`${expression.slice(0, 500)}: ${exceptionDetails.exception?.description ?? exceptionDetails.text}`);
    return result.value;
  }

  /** The result of a function, called in the page with these arguments. */
  async run<A extends unknown[], T>(work: (...args: A) => Promise<T>, ...args: A): Promise<T> {
    return this.value(`(${work})(...${JSON.stringify(args)})`);
  }

  /** Waits until an expression is true. In a page that is not loaded yet, it may also throw. */
  async until(expression: string): Promise<void> {
    const deadline = performance.now() + PATIENCE;
    for (;;) {
      const value = await this.value(expression).catch(String);
      if (value === true) return;
      if (performance.now() > deadline) throw new Error(`not in time: ${expression}: ${value}; ${this.uncaught}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  async close(): Promise<void> {
    const ended = once(this.#process, "exit");
    const timer = setTimeout(() => this.#process.kill("SIGKILL"), PATIENCE);
    this.#session = undefined;
    await this.#call("Browser.close");
    await ended;
    clearTimeout(timer);
    rmSync(this.#profile, { recursive: true, maxRetries: 10, retryDelay: 100 });
  }
}
