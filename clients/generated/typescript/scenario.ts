// What every generated client for TypeScript must do against a running service. A client is an adapter of a few lines.

import { deepStrictEqual } from "node:assert";

export interface TradeInput {
  type: "buy" | "sell";
  ticker: string;
  qty: number;
  price?: string;
}

export interface Appended {
  ranges: { firstSeq: number; lastSeq: number }[];
  totalItems: number;
  totalPages: number;
}

export interface Listing {
  items: { seq: number; ticker: string; qty: number; price?: string }[];
  links: { next?: string };
}

export interface Problem {
  type: string;
  status: number;
  errors?: { pointer?: string; detail: string }[];
}

/** What a call ends with: one of the two. */
export interface Answer<T> {
  data?: T | undefined;
  error?: Problem | undefined;
}

export interface Client {
  append(customerId: number, trade: TradeInput, key: string): Promise<Answer<Appended>>;
  appendMany(customerId: number, trades: TradeInput[], key: string): Promise<Answer<Appended>>;
  page(customerId: number, page: number): Promise<Answer<Listing>>;
  trade(customerId: number, seq: number): Promise<Answer<{ seq: number }>>;
}

/** The address of the service. */
export const service = process.env["PAGEBUCKET_URL"]!;

/** What the service wants with every request. */
export const token = process.env["TOKEN"]!;

/** For clients that do not know how to send a token. */
export const headers = { Authorization: `Bearer ${token}` };

const trade = (n: number): TradeInput => ({ type: "buy", ticker: "MDB", qty: n, price: `${n}.50` });

/** Goes through the steps and prints a line for each: its name, or its name and what failed. */
export async function scenario(client: Client): Promise<void> {
  const customer = Number(process.env["CUSTOMER"]);
  const page = async (number: number) => success(await client.page(customer, number));
  const first = () => client.append(customer, trade(1), "first");
  let stored: Appended | undefined;

  await step("appends", async () => {
    stored = success(await first());
    deepStrictEqual(stored.ranges, [{ firstSeq: 1, lastSeq: 1 }]);
    deepStrictEqual((await page(1)).items.map(priced), [[1, 1, "1.50"]]);
  });

  await step("repeats", async () => {
    deepStrictEqual(success(await first()), stored);
    deepStrictEqual((await page(1)).items.map(priced), [[1, 1, "1.50"]]);
  });

  await step("batches", async () => {
    const many = () => client.appendMany(customer, Array.from({ length: 23 }, (_, i) => trade(i + 2)), "many");
    stored = success(await many());
    deepStrictEqual([stored.ranges, stored.totalItems, stored.totalPages], [[{ firstSeq: 2, lastSeq: 24 }], 24, 3]);
    deepStrictEqual(success(await many()), stored);
  });

  await step("walks", async () => {
    success(await client.append(customer, trade(25), "last"));
    const seen = [];
    let number = 1;
    for (let more = true; more; number += 1) {
      const { items, links } = await page(number);
      seen.push(...items.map(priced));
      more = links.next !== undefined;
    }
    deepStrictEqual(number, 4);
    deepStrictEqual(seen, Array.from({ length: 25 }, (_, i) => [i + 1, i + 1, `${i + 1}.50`]));
  });

  await step("problems", async () => {
    const missing = failure(await client.trade(customer, 99));
    deepStrictEqual([missing.type, missing.status], ["/problems#item-not-found", 404]);
    const refused = failure(await client.append(customer, { ...trade(1), qty: 2 ** 53 }, "refused"));
    deepStrictEqual([refused.type, refused.status], ["/problems#invalid-item", 422]);
    deepStrictEqual(refused.errors?.map(({ pointer }) => pointer), ["/qty"]);
  });
}

const priced = ({ seq, qty, price }: Listing["items"][number]) => [seq, qty, price];

function success<T>({ data, error }: Answer<T>): T {
  if (error || data === undefined) throw new Error(`the answer is a problem: ${JSON.stringify(error)}`);
  return data;
}

function failure({ data, error }: Answer<unknown>): Problem {
  if (!error) throw new Error(`the answer is no problem: ${JSON.stringify(data)}`);
  return error;
}

async function step(name: string, run: () => Promise<void>): Promise<void> {
  try {
    await run();
    console.log(name);
  } catch (error) {
    console.log(name, JSON.stringify(String(error)));
  }
}
