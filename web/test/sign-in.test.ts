// The explorer of a service that answers only clients that it knows.

import assert from "node:assert/strict";
import { generateKeyPairSync, sign } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import type { Browser, Page } from "playwright-core";

import { eventually, launch, Service, skip, Visitor } from "./service.js";

const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });

function tokenOf(scope: string, expiresIn = 600): string {
  const now = Math.floor(Date.now() / 1000);
  const claims = {
    iss: "https://login.example",
    aud: "api",
    sub: "ann",
    client_id: "web",
    jti: "1",
    iat: now,
    exp: now + expiresIn,
    scope,
    customers: "*",
    rooms: "*",
    accounts: "*",
  };
  const parts = [{ alg: "ES256", typ: "at+jwt", kid: "one" }, claims].map((part) =>
    Buffer.from(JSON.stringify(part)).toString("base64url"),
  );
  const signature = sign("sha256", Buffer.from(parts.join(".")), { key: privateKey, dsaEncoding: "ieee-p1363" });
  return [...parts, signature.toString("base64url")].join(".");
}

suite("the explorer with authentication", { skip }, () => {
  let service: Service, browser: Browser, key: string;
  before(async () => {
    service = new Service();
    const jwks = join(service.directory, "jwks.json");
    writeFileSync(jwks, JSON.stringify({ keys: [{ ...publicKey.export({ format: "jwk" }), kid: "one", alg: "ES256", use: "sig" }] }));
    key = /pb_\S+/.exec(service.command("keys", "create", "--name", "explorer", "--scope", "read,append,list"))![0];
    const flags = ["--auth", "jwt,keys", "--jwt-issuer", "https://login.example", "--jwt-audience", "api", "--jwks", jwks];
    [browser] = await Promise.all([launch(), service.start(...flags)]);
  });
  after(async () => {
    await browser?.close();
    await service?.remove();
  });

  const signIn = async (page: Page, token: string) => {
    await page.getByLabel("Token or key").fill(token);
    await page.locator("form").getByRole("button", { name: "Sign in" }).click();
  };

  test("a key signs in for this tab", async () => {
    const visitor = await Visitor.of(browser, service.baseUrl);
    const page = await visitor.open("/");
    await page.getByLabel("Token or key").waitFor();
    let refused = 0;
    page.on("response", (response) => (refused += Number(response.status() === 401)));
    await signIn(page, "pb_wrong");
    await page.getByRole("alert").waitFor();
    assert.equal(refused, 1, "what is refused is not sent again");
    await signIn(page, key);
    await page.getByRole("button", { name: "Load sample trades" }).click();
    await page.getByText("25 trades on 3 pages").waitFor();
    await page.locator("[data-live=stream]").waitFor();
    await page.reload();
    await page.getByText("25 trades on 3 pages").waitFor();
    await page.getByText("Copy as curl").click();
    assert.equal((await page.locator(".sheet code").innerText()).includes("pb_"), false, "a command names no key");
    assert.equal(await page.evaluate(() => localStorage.length), 0);
    const other = await visitor.open("/");
    await other.getByLabel("Token or key").waitFor();
    await visitor.leave();
  });

  test("a key is kept on this device only when its user asks for it, until it is signed out", async () => {
    const visitor = await Visitor.of(browser, service.baseUrl);
    const page = await visitor.open("/");
    await page.getByRole("checkbox", { name: "Keep it on this device" }).check();
    await signIn(page, key);
    await page.getByRole("heading", { name: "Customers" }).waitFor();
    const other = await visitor.open("/");
    await other.getByRole("heading", { name: "Customers" }).waitFor();
    await other.getByRole("button", { name: "Signed in" }).click();
    await other.getByRole("button", { name: "Sign out" }).click();
    await other.getByLabel("Token or key").waitFor();
    assert.equal(await other.evaluate(() => JSON.stringify({ ...localStorage, ...sessionStorage })), "{}");
    await page.reload();
    await page.getByLabel("Token or key").waitFor();
    await visitor.leave();
  });

  test("what a token may not do is not offered", async () => {
    const visitor = await Visitor.of(browser, service.baseUrl);
    const page = await visitor.open("/explorer/customers/7/trades");
    await signIn(page, tokenOf("read"));
    await page.getByText("25 trades on 3 pages").waitFor();
    assert.equal(await page.getByRole("link", { name: "Append" }).count(), 0);
    await page.goto(`${service.baseUrl}/explorer/customers/8/trades`);
    await page.getByText("There are no trades yet.").waitFor();
    assert.equal(await page.getByRole("link", { name: "Append" }).count(), 0);
    await page.getByRole("link", { name: "pagebucket" }).click();
    await page.getByRole("heading", { name: "Customers" }).waitFor();
    assert.equal(await page.getByRole("link", { name: "25 trades of 7" }).count(), 0);
    await visitor.leave();
  });

  test("a token that is not accepted, or not any more, is asked for in place", async () => {
    const visitor = await Visitor.of(browser, service.baseUrl);
    // Clocks may differ by a minute: this one is over by then.
    const page = await visitor.open("/explorer/customers/7/trades");
    await signIn(page, tokenOf("read", -120));
    const refused = page.getByRole("alert").getByText("The service does not accept this token or key.");
    await refused.waitFor();
    await page.getByLabel("Token or key").waitFor();
    assert.equal(await page.getByRole("button", { name: "Signed in" }).count(), 0);
    assert.equal(await page.getByRole("button", { name: "Try again" }).count(), 0);
    await signIn(page, key);
    await page.getByText("25 trades on 3 pages").waitFor();
    assert.equal(await refused.count(), 0);
    await page.getByRole("button", { name: "Signed in" }).waitFor();

    // While it is used: the view stays, with what was typed.
    await page.getByRole("button", { name: "Signed in" }).click();
    const short = tokenOf("read append list", -35);
    await signIn(page, short);
    await page.getByRole("link", { name: "Append" }).click();
    await page.getByRole("textbox", { name: "ticker" }).fill("MDB");
    const headers = { Authorization: `Bearer ${short}` };
    await eventually(async () => (await fetch(`${service.baseUrl}/v1/customers`, { headers })).status, 401);
    await page.getByRole("button", { name: "Append", exact: true }).click();
    await refused.waitFor();
    assert.equal(await page.getByRole("textbox", { name: "ticker" }).inputValue(), "MDB");
    await signIn(page, key);
    await page.getByRole("button", { name: "Signed in" }).waitFor();
    assert.equal(await page.getByRole("textbox", { name: "ticker" }).inputValue(), "MDB");
    await visitor.leave();
  });

  test("what needs a token is not linked to, and errors are explained in place", async () => {
    const visitor = await Visitor.of(browser, service.baseUrl);
    const page = await visitor.open("/explorer/customers/7/trades?page=99");
    await signIn(page, key);
    await page.getByRole("alert").getByText("No such page", { exact: true }).waitFor();
    await page.getByText("About this error").click();
    await page.getByText("The history has no page with this number yet.").waitFor();
    for (const path of ["/", "/explorer/customers", "/explorer/customers/7/trades"]) {
      await page.goto(service.baseUrl + path);
      await page.getByRole("heading", { level: 1 }).waitFor();
      await page.waitForFunction(() => !document.querySelector("main .loading"));
      const links = await page.locator("a[href]:not([download])").evaluateAll((links) => links.map((link) => (link as HTMLAnchorElement).href));
      for (const link of new Set(links)) assert.equal((await fetch(link)).status, 200, `${link} on ${path}`);
    }
    await visitor.leave();
  });
});
