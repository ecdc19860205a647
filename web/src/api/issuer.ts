// Sign-in at the issuer of the service's tokens: the authorization code flow of a public client, with PKCE (RFC 7636).
// The service names the issuer and the client in its metadata (RFC 9728). The token stays in memory; the browser keeps
// only what the answer is checked by, until it comes.

import { BASE, ROOT, signIn } from "./service";
import { ofTab } from "./storage";
import { recordedFetch } from "./requests";

export interface Issuer {
  address: string;
  client: string;
  scopes: string[];
  /** The service, as the issuer knows it. */
  resource: string;
}

/** A sign-in that has begun. */
interface Begun {
  issuer: Issuer;
  state: string;
  verifier: string;
  /** The view to return to. */
  view: string;
}

const STORED = "pagebucket.signIn";

/** Where the issuer sends its answer. The issuer knows this address as one of the client. */
const REDIRECT = `${BASE}/`;

/** `undefined` if the service names none: its users have their tokens or keys from elsewhere. */
export async function readIssuer(signal: AbortSignal): Promise<Issuer | undefined> {
  const response = await recordedFetch(`${BASE}/.well-known/oauth-protected-resource`, { signal });
  const { authorization_servers: [address] = [], resource, explorer_client_id: client, explorer_scopes: scopes } = response.ok ? await response.json() : {};
  return address && client ? { address, client, scopes, resource } : undefined;
}

/** Leads to the issuer. */
export async function beginSignIn(issuer: Issuer): Promise<void> {
  if (!isSecureContext) throw new Error("Browsers allow this only for pages that come by https or from this machine.");
  const [state, verifier] = [random(), random()];
  const { authorization_endpoint: endpoint } = await endpointsOf(issuer);
  const begun: Begun = { issuer, state, verifier, view: location.pathname + location.search };
  ofTab.set(STORED, JSON.stringify(begun));
  const challenge = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier));
  const address = new URL(endpoint);
  const query = {
    response_type: "code",
    client_id: issuer.client,
    redirect_uri: REDIRECT,
    scope: issuer.scopes.join(" "),
    state,
    code_challenge: base64url(new Uint8Array(challenge)),
    code_challenge_method: "S256",
    ...resourceOf(issuer),
  };
  for (const [name, value] of Object.entries(query)) address.searchParams.set(name, value);
  location.assign(address);
}

let failure: unknown;

/** Why the last sign-in did not work, if it did not. */
export function signInFailure(): unknown {
  return failure;
}

/** Takes the issuer's answer, if this address is one, and returns to the view where the sign-in began. */
export async function finishSignIn(): Promise<void> {
  const answer = new URLSearchParams(location.search);
  const isAnswer = location.pathname === ROOT.pathname && answer.has("state") && (answer.has("code") || answer.has("error"));
  const stored = isAnswer ? ofTab.get(STORED) : undefined;
  if (!isAnswer) return;
  ofTab.set(STORED, undefined);
  const begun = stored === undefined ? undefined : (JSON.parse(stored) as Begun);
  history.replaceState(null, "", begun?.view ?? ROOT.pathname);
  try {
    if (!begun || answer.get("state") !== begun.state) throw new Error("The answer belongs to no sign-in of this tab. Sign in again.");
    const by = answer.get("iss") ?? begun.issuer.address;
    if (by !== begun.issuer.address) throw new Error(`The answer is of another issuer: ${by}.`);
    const code = answer.get("code");
    if (code === null) throw new Error(`The issuer says: ${answer.get("error_description") ?? answer.get("error")}.`);
    signIn(await exchange(begun, code), "page");
  } catch (error) {
    failure = error;
  }
}

/** Asks the issuer. It has to allow pages of this origin to do so. */
async function ask(address: string, init?: RequestInit): Promise<Response> {
  try {
    return await fetch(address, init);
  } catch {
    const { origin } = new URL(address);
    throw new Error(`${origin} was not reached, or does not allow pages of ${location.origin} to ask it (CORS).`);
  }
}

async function exchange({ issuer, verifier }: Begun, code: string): Promise<string> {
  const { token_endpoint: endpoint } = await endpointsOf(issuer);
  const form = {
    grant_type: "authorization_code",
    code,
    redirect_uri: REDIRECT,
    client_id: issuer.client,
    code_verifier: verifier,
    ...resourceOf(issuer),
  };
  const response = await ask(endpoint, { method: "POST", body: new URLSearchParams(form) });
  const token = await response.json();
  if (typeof token.access_token !== "string") throw new Error(`The issuer says: ${token.error_description ?? token.error}.`);
  return token.access_token;
}

interface Endpoints {
  issuer: string;
  authorization_endpoint: string;
  token_endpoint: string;
}

async function endpointsOf({ address }: Issuer): Promise<Endpoints> {
  const response = await ask(`${address.replace(/\/$/, "")}/.well-known/openid-configuration`);
  if (!response.ok) throw new Error(`The issuer does not say where to sign in: HTTP status ${response.status}.`);
  const endpoints: Endpoints = await response.json();
  if (endpoints.issuer !== address) throw new Error(`The issuer calls itself ${endpoints.issuer}, and the service calls it ${address}.`);
  return endpoints;
}

/** What the token is for (RFC 8707), which has to be an address there. */
function resourceOf({ resource }: Issuer): { resource?: string } {
  return URL.canParse(resource) ? { resource } : {};
}

function random(): string {
  return base64url(crypto.getRandomValues(new Uint8Array(32)));
}

function base64url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}
