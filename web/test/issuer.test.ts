// Sign-in to the explorer at a real issuer, oidc-provider, whose pages ask for a name and for consent.

import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, suite, test } from "node:test";
import type { Browser, Page } from "playwright-core";

import { launch, root, Service, skip, Visitor } from "./service.js";

const { OIDC_PROVIDER, CI } = process.env;
const isMissing = skip || (OIDC_PROVIDER || CI ? false : "OIDC_PROVIDER does not name the packages of tests/issuer");

suite("the explorer with an issuer", { skip: isMissing }, () => {
  let service: Service, browser: Browser, issuer: ChildProcess, address: string, key: string;
  before(async () => {
    issuer = spawn("node", [join(root, "tests/issuer/issuer.mjs"), OIDC_PROVIDER!], { stdio: ["pipe", "pipe", "ignore"] });
    address = await new Promise<string>((resolve) => createInterface(issuer.stdout!).once("line", resolve));
    service = new Service();
    key = /pb_\S+/.exec(service.command("keys", "create", "--name", "explorer", "--scope", "read,append,list"))![0];
    const tokens = ["--auth", "jwt,keys", "--jwt-issuer", address, "--jwt-audience", "https://api.example", "--jwks", `${address}/jwks`];
    [browser] = await Promise.all([launch(), service.start(...tokens, "--explorer-oidc-client-id", "explorer")]);
  });
  after(async () => {
    await browser?.close();
    await service?.remove();
    issuer?.stdin!.end();
  });

  const button = (page: Page) => page.getByRole("button", { name: `Sign in at ${new URL(address).host}` });
  /** What the issuer asks a user who is new to it. */
  const answerIssuer = async (page: Page) => {
    await page.getByPlaceholder("Enter any login").fill("ann");
    await page.getByPlaceholder("and password").fill("x");
    await page.getByRole("button", { name: "Sign-in" }).click();
    await page.getByRole("button", { name: "Continue" }).click();
  };
  const stored = (page: Page) => page.evaluate(() => JSON.stringify({ ...localStorage, ...sessionStorage }));

  test("its users sign in there, return to the view where they were, and their token is nowhere but in memory", async () => {
    const visitor = await Visitor.of(browser, service.baseUrl);
    const view = "/explorer/customers/7/trades?order=asc";
    const page = await visitor.open(view);
    await button(page).click();
    await answerIssuer(page);
    await page.waitForURL(service.baseUrl + view);
    await page.getByText("There are no trades yet.").waitFor();
    await page.getByRole("link", { name: "Append the first" }).click();
    await page.getByRole("button", { name: "Fill in the example" }).click();
    await page.getByRole("button", { name: "Append", exact: true }).click();
    await page.getByRole("link", { name: "number 1" }).waitFor();
    await page.getByRole("link", { name: "pagebucket" }).click();
    await page.getByRole("link", { name: "1 trade of 7" }).waitFor();
    const { "pagebucket.draft:/v1/customers/7/trades": draft, ...rest } = JSON.parse(await stored(page));
    assert.deepEqual(rest, {}, "neither a token nor a verifier");
    assert.ok(!draft.includes("eyJ"), draft);

    // Loaded again it has none. The issuer remembers who it is, and asks no password.
    await page.reload();
    await button(page).click();
    await page.getByRole("button", { name: "Continue" }).click();
    await page.getByRole("link", { name: "1 trade of 7" }).waitFor();
    await page.goBack();
    await page.waitForLoadState();
    assert.ok(!page.url().includes("code="), "no code is left in the history of the browser");
    await visitor.leave();
  });

  test("an answer that belongs to no sign-in, or a refusal, is said, and a pasted key still works", async () => {
    const visitor = await Visitor.of(browser, service.baseUrl);
    const page = await visitor.open("/?code=stolen&state=other");
    await page.getByRole("alert").getByText("The answer belongs to no sign-in of this tab.").waitFor();
    assert.equal(page.url(), `${service.baseUrl}/`);
    await page.goto(`${service.baseUrl}/explorer/customers/7/trades`);
    await button(page).click();
    await page.getByRole("link", { name: "[ Cancel ]" }).click();
    await page.getByRole("alert").getByText("The issuer says:").waitFor();
    assert.equal(page.url(), `${service.baseUrl}/explorer/customers/7/trades`);
    await page.getByLabel("Or a token or key").fill(key);
    await page.locator("form").getByRole("button", { name: "Sign in", exact: true }).click();
    await page.getByText("1 trade on 1 page").waitFor();
    await visitor.leave();
  });

  test("its page may ask the issuer, and nobody else", async () => {
    const policies = await Promise.all(
      ["/", "/explorer/customers"].map(async (path) => (await fetch(service.baseUrl + path)).headers.get("content-security-policy")!),
    );
    for (const policy of policies) assert.match(policy, new RegExp(`connect-src 'self' ${address};`));
    const metadata = await service.get("/.well-known/oauth-protected-resource");
    assert.deepEqual([metadata.explorer_client_id, metadata.authorization_servers], ["explorer", [address]]);
  });
});
