// The service that has sent this page, and the token of its user.

import type { Service } from "@pagebucket/client";
import { recordedFetch } from "./requests";

const here = import.meta.url;

/** Where the service is, with the path that a proxy adds, if any: scripts lie in `assets/` below it. Ends with a slash. */
export const ROOT = import.meta.env.DEV ? new URL("/", location.href) : new URL("../", here);

export const BASE = ROOT.href.replace(/\/$/, "");

const STORED = "pagebucket.token";
let token = sessionStorage.getItem(STORED) ?? localStorage.getItem(STORED) ?? "";
const listeners = new Set<() => void>();

export const service: Service = {
  baseUrl: BASE,
  // As it is when a request is sent. There is no other one to ask for when it is refused, as a function would.
  get token() {
    return token;
  },
  fetch: recordedFetch,
};

export function signedIn(): boolean {
  return token !== "";
}

let turn = 0;

/** Changes with each token: what another one has read is read again. */
export function signInTurn(): number {
  return turn;
}

/** Uses a token until the tab is closed, or on this device from now on. An empty one signs out. */
export function signIn(given: string, keep: boolean): void {
  token = given;
  turn++;
  localStorage.removeItem(STORED);
  sessionStorage.removeItem(STORED);
  if (given) (keep ? localStorage : sessionStorage).setItem(STORED, given);
  for (const listener of listeners) listener();
}

export function onSignIn(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Whether the user may do what needs this scope, as far as the page can know: an access token says so, a key does not. */
export function may(scope: string): boolean {
  const [, payload] = token.split(".");
  if (!payload) return true;
  try {
    const claims = JSON.parse(atob(payload.replace(/-/g, "+").replace(/_/g, "/")));
    return typeof claims.scope !== "string" || claims.scope.split(" ").includes(scope);
  } catch {
    return true;
  }
}
