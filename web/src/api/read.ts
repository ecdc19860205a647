// Reads of the service that belong to no single history.

import { history, list, type History, type Stored } from "@pagebucket/client";
import { service } from "./service";

/** An item of any history: what its definition says. */
export type Item = Stored & Record<string, unknown>;

export type AnyHistory = History<Item, unknown, unknown, never>;

/** What names a history: the collection of its owners, and its own name. */
interface Named {
  owners: string;
  items: string;
}

export function historyOf({ owners, items }: Named, owner: string): AnyHistory {
  return history<Item, unknown, unknown, never>(service, owners, owner, items);
}

/** Milliseconds after which what was read ahead is too old for a view. */
const FRESH = 5000;

const ahead = new Map<string, Promise<unknown>>();

/** Asks for what a view will read as soon as the answers are there that it waits for. */
export function readAhead(path: string): void {
  const answer = read(path, new AbortController().signal);
  ahead.set(path, answer);
  const forget = () => ahead.delete(path);
  answer.then(() => setTimeout(forget, FRESH), forget);
}

/** What is at a path of the service: read as the client reads links. */
export function read(path: string, signal: AbortSignal): Promise<unknown> {
  const answer = ahead.get(path);
  ahead.delete(path);
  return answer ?? list({ service, path } as AnyHistory, path, { signal });
}

export interface Totals {
  totalItems: number;
  totalPages: number;
}

export interface Summary extends Totals {
  firstPage: number;
  firstSeq: number;
  first?: Item;
  last?: Item;
}

/** An owner: its id, and what each of its histories has. */
export type Owner<T> = Record<string, T | string | number | undefined>;

export interface Owners {
  items: Owner<Totals>[];
  links: { next?: string };
}

/** The summaries of an owner's histories, by their names. */
export async function summaries({ owners }: Named, owner: string, signal: AbortSignal): Promise<Owner<Summary>> {
  return (await read(ownerPath(owners, owner), signal)) as Owner<Summary>;
}

/** The first owners after an id. */
export async function ownersAfter(owners: string, after: string, limit: number, signal: AbortSignal): Promise<Owners> {
  return (await read(ownersPath(owners, after, limit), signal)) as Owners;
}

export function ownersPath(owners: string, after: string, limit: number): string {
  const query = new URLSearchParams({ ...(after ? { after } : {}), limit: String(limit) });
  return `/v1/${encodeURIComponent(owners)}?${query}`;
}

export function ownerPath(owners: string, owner: string): string {
  return `/v1/${encodeURIComponent(owners)}/${encodeURIComponent(owner)}`;
}
