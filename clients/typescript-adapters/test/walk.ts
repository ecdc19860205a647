// What every adapter goes through: a walk of 1,000 pages, newest first, while another client appends.

import { append, list, trades, type History, type TradeInput, type Trade } from "@pagebucket/client";

const PAGES = 1000;
export const LENGTH = 10;

/** The other client appends one trade to this number of reads. */
const READS = 4;

export type Trades = History<Trade, TradeInput, { customerId: number }>;

/** A page as a library shows it. */
export interface Shown {
  seqs: number[];
  total: number | undefined;
}

export function manyTrades(count: number): TradeInput[] {
  return Array.from({ length: count }, (_, index) => ({ type: "buy", ticker: "MDB", qty: index + 1, price: "15.50" }));
}

/** The trades of a customer, 1,000 pages of them. While they are read, another client appends to them. */
export async function underWrites(baseUrl: string, customer: number) {
  const others: Trades = trades({ baseUrl }, customer);
  for (let filled = 0; filled < PAGES * LENGTH; filled += 1000) await append(others, manyTrades(1000));
  const appends: Promise<unknown>[] = [];
  let reads = 0;
  const observed: typeof fetch = (...request) => {
    if (++reads % READS === 0) appends.push(append(others, manyTrades(1)[0]!));
    return fetch(...request);
  };
  const mine: Trades = trades({ baseUrl, fetch: observed }, customer);
  return { mine, faults: async (shown: Shown[]) => faults(shown, others, (await Promise.all(appends)).length) };
}

/** What is wrong with a walk: nothing, if it shows each row once, newest first, and on each page the same right total. */
async function faults(shown: Shown[], others: Trades, appended: number): Promise<string[]> {
  const found: string[] = [];
  const filled = PAGES * LENGTH;
  if (shown.length !== PAGES) found.push(`${shown.length} pages`);
  for (const [page, { seqs, total }] of shown.entries()) {
    const expected = Array.from({ length: LENGTH }, (_, row) => filled - page * LENGTH - row);
    if (seqs.join() !== expected.join()) found.push(`page ${page + 1} has ${seqs}`);
    if (total !== filled) found.push(`page ${page + 1} has a total of ${total}`);
  }
  const { totalItems } = await list(others);
  if (appended < PAGES / READS || totalItems !== filled + appended) found.push(`${appended} were appended, and there are ${totalItems}`);
  return found.slice(0, 10);
}
