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
  const claims = { iss: ISSUER, aud: AUDIENCE, sub: "ann", client_id: "tests", jti: "1", iat: now, exp: now - 60 + seconds, scope: "read append", customers: "*" };
  const parts = [{ alg: "EdDSA", typ: "at+jwt", kid: "one" }, claims].map((part) => Buffer.from(JSON.stringify(part)).toString("base64url"));
  return [...parts, sign(null, Buffer.from(parts.join(".")), privateKey).toString("base64url")].join(".");
}

/** A `fetch` over HTTP/2, which that of Node.js does not speak. */
function fetchOver(session: ClientHttp2Session): typeof fetch {
  return (url, { headers, signal } = {}) =>
    new Promise((resolve, reject) => {
      const { pathname, search } = new URL(String(url));
      const stream = session.request({ ":path": pathname + search, ...Object.fromEntries(new Headers(headers)) });
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
    const lines = documented(service.baseUrl);
    const holds = `${alone}proxy_ignore_headers X-Accel-Buffering; proxy_buffer_size 64k; proxy_buffers 4 64k;\n`;
    nginx = await new Nginx().start([{ lines: alone }, { lines }, { lines: alone, http2: true }, { lines, http2: true }, { lines: holds }]);
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
});
