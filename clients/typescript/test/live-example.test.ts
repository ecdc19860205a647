// The example of docs/how-to/follow.md as printed, in a browser: a chat and a ticker, through all that ends an `EventSource`.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer, request as ask, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";

import { append, history, trades, type Stored } from "@pagebucket/client";

import { Browser, CHROMIUM } from "./browser.js";
import { RealService, root, skip } from "./service.js";

const page = readFileSync(join(root, "docs/how-to/follow.md"), "utf8");
const example = [...page.matchAll(/^```js\n(.*?)^```$/gms)].map(([, code]) => code).join("");

interface Message extends Stored {
  author: string;
  text: string;
}

const why = skip || (CHROMIUM || process.env["CI"] ? false : "CHROMIUM names no browser");

suite("the example of docs/how-to/follow.md", { skip: why }, () => {
  let service: RealService, site: Server, browser: Browser;
  /** What the next requests for a stream get instead of one. */
  const refusals: number[] = [];
  /** What happens before each of the next requests for a stream is passed on. */
  const delays: ((url: string) => Promise<unknown>)[] = [];
  const streams = new Set<ServerResponse>();

  before(async () => {
    [service, browser] = await Promise.all([new RealService(["--allow-erase"]).start(), Browser.open()]);
    site = createServer(async ({ url, method, headers: { host: _, ...headers } }, response) => {
      if (url === "/") return response.writeHead(200, { "content-type": "text/html" }).end('<!doctype html><title>live</title><ol id="chat"></ol><output id="ticker"></output>');
      if (url!.includes("/live?")) {
        const refusal = refusals.shift();
        if (refusal) return response.writeHead(refusal).end();
        await delays.shift()?.(url!);
        streams.add(response.on("close", () => streams.delete(response)));
      }
      const asked = ask(service.baseUrl + url, { method: method!, headers }, (answer) => answer.pipe(response.writeHead(answer.statusCode!, answer.headers)));
      response.on("close", () => asked.destroy());
      asked.on("error", () => response.destroy()).end();
      return response;
    });
    await new Promise<void>((resolve) => site.listen(0, "127.0.0.1", resolve));
  });
  after(async () => {
    await browser?.close();
    site?.close();
    site?.closeAllConnections();
    await service?.remove();
  });

  test("shows a chat and a ticker without a gap, whatever ends their streams", async () => {
    const [kitchen, mine] = [history<Message, Omit<Message, "seq">>(service, "rooms", "kitchen", "messages"), trades(service, 7)];
    let said = 0;
    const say = (count: number) => append(kitchen, Array.from({ length: count }, () => ({ author: "ann", text: `${++said}` })));
    const trade = (price: string) => append(mine, { type: "buy", ticker: "MDB", qty: 1, price });
    const shown = async (first: number, last: number, price: string) => {
      const lines = Array.from({ length: last + 1 - first }, (_, index) => `ann: ${first + index}`);
      const chat = "[...document.querySelectorAll('#chat li')].map(line => line.textContent).join()";
      await browser.until(`${chat} == ${JSON.stringify(lines.join())} && ticker.value == "MDB ${price}"`);
    };
    await say(60);
    await trade("1.00");
    // Between the window and the stream, of each.
    delays.push(...Array.from({ length: 2 }, () => (url: string) => url.includes("messages") ? say(2) : trade("2.00")));
    await browser.go(`http://127.0.0.1:${(site.address() as AddressInfo).port}/`);
    await browser.value(`(() => { ${example} })()`);
    await shown(11, 62, "2.00");
    for (const next of [[], [503, 503], [429, 502, 504, 503]]) {
      refusals.push(...next);
      for (const stream of streams) stream.destroy();
      await say(3);
      await trade(`${said}.50`);
      await shown(11, said, `${said}.50`);
      assert.deepEqual(refusals, []);
    }
    // Both are read again.
    service.command("migrate", "--renew-epoch");
    await shown(said - 49, said, `${said}.50`);
    await say(1);
    await shown(said - 50, said, `${said - 1}.50`);
    for (const path of [kitchen.path, mine.path]) {
      const erased = await fetch(service.baseUrl + path.split("/").slice(0, 4).join("/"), { method: "DELETE" });
      assert.ok(erased.ok, `${erased.status}`);
    }
    await browser.until('chat.textContent == "This room was erased." && ticker.value == ""');
    assert.deepEqual(browser.uncaught, []);
  });
});
