// The service that has sent this page, and the token of its user.

import type { Service } from "@pagebucket/client";
import { recordedFetch } from "./requests";
import { ofDevice, ofTab } from "./storage";

const here = import.meta.url;

/** Where the service is, with the path that a proxy adds, if any: scripts lie in `assets/` below it. Ends with a slash. */
export const ROOT = import.meta.env.DEV ? new URL("/", location.href) : new URL("../", here);

export const BASE = ROOT.href.replace(/\/$/, "");

const STORED = "pagebucket.token";
let token = ofTab.get(STORED) ?? ofDevice.get(STORED) ?? "";
/** What the service has said of the token that it refused, or of a request without one. */
let refused: string | undefined;
let turn = 0;
const listeners = new Set<() => void>();

export const service: Service = {
  baseUrl: BASE,
  // As it is when a request is sent. There is no other one to ask for when it is refused, as a function would.
  get token() {
    return token;
  },
  fetch: async (input, init) => {
    const asked = turn;
    const response = await recordedFetch(input, init);
    if (response.status === 401 && asked === turn && refused === undefined) {
      refused = await detailOf(response.clone());
      tell();
    }
    return response;
  },
};

async function detailOf(response: Response): Promise<string> {
  const problem = await response.json().catch(() => undefined);
  return typeof problem?.detail === "string" ? problem.detail : "";
}

/** Why a token is asked for: the service has refused what it was sent. `undefined` as long as it has not. */
export function refusal(): string | undefined {
  return refused;
}

export function signedIn(): boolean {
  return token !== "";
}

/** Changes with each token: what another one has read is read again. */
export function signInTurn(): number {
  return turn;
}

/** How long a token is kept: until the page is left, until the tab is closed, or on this device from now on. */
export type Keeping = "page" | "tab" | "device";

/** Uses a token. An empty one signs out. */
export function signIn(given: string, keeping: Keeping): void {
  token = given;
  refused = undefined;
  turn++;
  const kept = given || undefined;
  ofDevice.set(STORED, keeping === "device" ? kept : undefined);
  ofTab.set(STORED, keeping === "tab" ? kept : undefined);
  tell();
}

function tell(): void {
  for (const listener of listeners) listener();
}

export function onSignIn(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

let docs = false;

/** Whether the documentation needs a token, which a link does not carry. The catalogue says so. */
export function docsNeedToken(): boolean {
  return docs;
}

export function setDocsNeedToken(needed: boolean): void {
  docs = needed;
}

/** The text at a path, with the token. */
export async function readText(path: string): Promise<string> {
  const response = await service.fetch!(BASE + path, token ? { headers: { Authorization: `Bearer ${token}` } } : {});
  if (!response.ok) throw new Error(`HTTP status ${response.status}`);
  return response.text();
}

const READ_ONLY = "pagebucket.readOnly";

/** Whether the page offers nothing that stores. */
export function readOnly(): boolean {
  return ofDevice.get(READ_ONLY) !== undefined;
}

export function setReadOnly(wanted: boolean): void {
  ofDevice.set(READ_ONLY, wanted ? "on" : undefined);
  tell();
}

/** Whether the user may do what needs this scope, as far as the page can know: an access token says so, a key does not. */
export function may(scope: string): boolean {
  if (scope === "append" && readOnly()) return false;
  const [, payload] = token.split(".");
  if (!payload) return true;
  try {
    const claims = JSON.parse(atob(payload.replace(/-/g, "+").replace(/_/g, "/")));
    return typeof claims.scope !== "string" || claims.scope.split(" ").includes(scope);
  } catch {
    return true;
  }
}
