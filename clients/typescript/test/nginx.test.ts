// Live histories through nginx, with tokens that expire meanwhile.

import assert from "node:assert/strict";
import { generateKeyPairSync, sign } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect, type ClientHttp2Session } from "node:http2";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { after, before, suite, test } from "node:test";

import { append, live, trades, type LiveState, type TradeInput } from "@pagebucket/client";

import { documented, Nginx, NGINX } from "./nginx.js";
import { RealService, skip } from "./service.js";

const { publicKey, privateKey } = generateKeyPairSync("ed25519");
const ISSUER = "https://issuer.example";
const AUDIENCE = "https://api.example";

/** An access token that the service accepts for this time. */
function token(seconds: number): string {
  const now = Math.floor(Date.now() / 1000);
  // The service allows clocks to differ by a minute.
  const claims = { iss: ISSUER, aud: AUDIENCE, sub: "ann", client_id: "tests", jti: "1", iat: now, exp: now - 60 + seconds, scope: "read append", customers: "*", rooms: "*" };
  const parts = [{ alg: "EdDSA", typ: "at+jwt", kid: "one" }, claims].map((part) => Buffer.from(JSON.stringify(part)).toString("base64url"));
  return [...parts, sign(null, Buffer.from(parts.join(".")), privateKey).toString("base64url")].join(".");
}

// The certificate of nginx is its own.
process.env["NODE_TLS_REJECT_UNAUTHORIZED"] = "0";

/** A `fetch` over HTTP/2, which that of Node.js does not speak. */
function fetchOver(session: ClientHttp2Session): typeof fetch {
  return (url, { method = "GET", headers, body, signal } = {}) =>
    new Promise((resolve, reject) => {
      const { pathname, search } = new URL(String(url));
      const stream = session.request({ ":method": method, ":path": pathname + search, ...Object.fromEntries(new Headers(headers)) });
      stream.end(body);
      const abort = () => stream.destroy(signal!.reason);
      signal?.addEventListener("abort", abort);
      stream.on("close", () => signal?.removeEventListener("abort", abort));
      stream.on("error", reject);
      stream.on("response", (head) => {
        const fields = Object.entries(head).filter(([name]) => !name.startsWith(":"));
        resolve(new Response(Readable.toWeb(stream) as ReadableStream, { status: head[":status"]!, headers: fields as [string, string][] }));
      });
    });
}

const why = skip || (NGINX || process.env["CI"] ? false : "NGINX names no nginx");

suite("through nginx", { skip: why }, () => {
  const directory = mkdtempSync(join(tmpdir(), "pagebucket-issuer-"));
  let service: RealService, nginx: Nginx;
  const sessions: ClientHttp2Session[] = [];
  before(async () => {
    const keys = join(directory, "keys.json");
    writeFileSync(keys, JSON.stringify({ keys: [{ ...publicKey.export({ format: "jwk" }), kid: "one", alg: "EdDSA", use: "sig" }] }));
    service = await new RealService(["--auth", "jwt", "--jwt-issuer", ISSUER, "--jwt-audience", AUDIENCE, "--jwks", keys]).start();
    const alone = `proxy_pass ${service.baseUrl};\n`;
    const lines = { lines: documented(service.baseUrl, service.baseUrl), documented: true };
    const holds = `${alone}proxy_ignore_headers X-Accel-Buffering; proxy_buffer_size 64k; proxy_buffers 4 64k;\n`;
    nginx = await new Nginx().start([{ lines: alone }, lines, { lines: alone, http2: true }, { ...lines, lines: lines.lines.replaceAll("pagebucket", "other") }, { lines: holds }]);
  });
  after(async () => {
    for (const session of sessions) session.destroy();
    await nginx?.stop();
    await service?.remove();
    rmSync(directory, { recursive: true });
  });

  test("a live history comes once and in order, with its defaults and the documented lines, over HTTP/1.1 and HTTP/2, and by polls", async () => {
    const count = 60;
    const readers = nginx.urls.map(async (baseUrl, index) => {
      const http2 = index === 2 || index === 3;
      if (http2) sessions.push(connect(baseUrl));
      let tokens = 0;
      const states = new Set<LiveState>();
      const service = { baseUrl, token: () => (tokens++, token(index === 4 ? 60 : 5)), ...(http2 && { fetch: fetchOver(sessions.at(-1)!) }) };
      const seqs: number[] = [];
      const onState = (state: LiveState) => void states.add(state);
      for await (const { seq, qty } of live(trades(service, 7), { after: 0 }, { onState })) {
        assert.equal(qty, seq);
        if (seqs.push(seq) === count) break;
      }
      return { seqs, tokens, states: [...states] };
    });
    const mine = trades({ baseUrl: service.baseUrl, token: token(3600) }, 7);
    for (let qty = 1; qty <= count; qty++) {
      await append(mine, { type: "buy", ticker: "MDB", qty } as TradeInput);
      // Longer in all than a token is valid, and than a client waits for a stream that is held back.
      await new Promise((resolve) => setTimeout(resolve, 250));
    }
    for (const [index, { seqs, tokens, states }] of (await Promise.all(readers)).entries()) {
      assert.deepEqual(seqs, Array.from({ length: count }, (_, index) => index + 1));
      assert(tokens > 1, `${index}: ${tokens}`);
      assert(states.includes(index === 4 ? "polling" : "stream") && !states.includes(index === 4 ? "stream" : "polling"), `${index}: ${states}`);
    }
  });

  test("a long query passes its default buffers, because the header of links is left out", async () => {
    const headers = { authorization: `Bearer ${token(3600)}`, "content-type": "application/json" };
    const path = `${nginx.urls[0]}/v1/rooms/kitchen/messages`;
    const appended = await fetch(path, { method: "POST", headers, body: JSON.stringify({ author: "ann", text: "hello" }) });
    assert.equal(appended.status, 201, await appended.text());
    const read = async (query: string) => {
      const answer = await fetch(`${path}?${query}`, { headers });
      const { links } = JSON.parse(await answer.text());
      return [answer.status, answer.headers.has("link"), Object.keys(links ?? {}).length > 2];
    };
    assert.deepEqual(await read("limit=1&author=ann"), [200, true, true]);
    const others = Array.from({ length: 12 }, (_, index) => `&author=${encodeURIComponent("é".repeat(30 + index))}`);
    assert.deepEqual(await read(`limit=1&author=ann${others.join("")}`), [200, false, true]);
  });
});

suite("two instances behind nginx", { skip: why }, () => {
  let database: RealService, instances: RealService[], nginx: Nginx;
  before(async () => {
    database = await new RealService().start();
    instances = [1, 2].map(() => new RealService(["--drain-delay", "2"], database));
    for (const instance of instances) await instance.start();
    const [one, other] = instances;
    nginx = await new Nginx().start([{ lines: documented(one!.baseUrl, other!.baseUrl), documented: true }]);
  });
  after(async () => {
    await nginx?.stop();
    for (const instance of instances ?? []) await instance.remove();
    await database?.remove();
  });

  test("a rolling restart fails no request, also no POST, and a live reader misses nothing", async () => {
    const [baseUrl] = nginx.urls;
    let over = false;
    const counts: number[] = [];
    const worker = async (owner: number) => {
      // nginx ends a connection after 1,000 requests.
      let [session, requests, stored] = [connect(baseUrl!), 0, 0];
      while (!over) {
        if (++requests % 250 === 0) (session.close(), (session = connect(baseUrl!)));
        const path = `${baseUrl}/v1/customers/${owner}/trades`;
        const headers = { "content-type": "application/json" };
        const body = JSON.stringify({ type: "buy", ticker: "MDB", qty: ++stored });
        const appended = await fetchOver(session)(path, { method: "POST", headers, body });
        assert.equal(appended.status, 201, await appended.text());
        const read = await fetchOver(session)(`${path}?limit=1&order=desc`);
        const { items } = JSON.parse(await read.text());
        assert.deepEqual([read.status, items?.[0]?.seq], [200, stored]);
      }
      session.close();
      counts[owner] = stored;
    };
    const owners = [1, 2, 3, 4];
    const workers = Promise.all(owners.map(worker));
    const mine = trades({ baseUrl: baseUrl! }, 1);
    let last = Infinity;
    const read = (async () => {
      const seqs: number[] = [];
      for await (const { seq } of live(mine, { after: 0 })) {
        seqs.push(seq);
        if (seq === last) break;
      }
      return seqs;
    })();
    for (let round = 0; round < 2; round++) {
      for (const instance of instances) {
        await instance.stop();
        await instance.start();
      }
    }
    over = true;
    await workers;
    last = counts[1]! + 1;
    await append(mine, { type: "buy", ticker: "MDB", qty: last } as TradeInput);
    assert.deepEqual(await read, Array.from({ length: last }, (_, index) => index + 1));
  });
});
