// orval's schemas for Zod are no client: requests are made by hand here, and each answer must be as its schema says.
import {
  AppendTradeBatch201Response, AppendTradeBatchBody, AppendTrades201Response, AppendTrades422Response, AppendTradesBody, AppendTradesHeader,
  GetTrade200Response, GetTrade404Response, ListTrades200Response,
} from "../build/orval-zod/client";
import { headers, scenario, service } from "./scenario";

await scenario({
  async append(customerId, trade, key) {
    const answer = await post(address(customerId), trade, key);
    // The schema must agree with the service on what is a trade.
    const valid = AppendTradesBody.safeParse(trade).success;
    if (valid !== (answer.status === 201)) throw new Error(`the schema says ${valid}, the service ${answer.status}`);
    return valid ? { data: AppendTrades201Response.parse(await answer.json()) } : { error: AppendTrades422Response.parse(await answer.json()) };
  },
  async appendMany(customerId, trades, key) {
    const answer = await post(`${address(customerId)}/batch`, AppendTradeBatchBody.parse(trades), key);
    return { data: AppendTradeBatch201Response.parse(await answer.json()) };
  },
  page: async (customerId, page) => ({ data: ListTrades200Response.parse(await (await fetch(`${address(customerId)}?page=${page}`, { headers })).json()) }),
  async trade(customerId, seq) {
    const answer = await fetch(`${address(customerId)}/${seq}`, { headers });
    return answer.ok ? { data: GetTrade200Response.parse(await answer.json()) } : { error: GetTrade404Response.parse(await answer.json()) };
  },
});

function post(address: string, body: unknown, key: string): Promise<Response> {
  const all = { ...headers, "Content-Type": "application/json", ...AppendTradesHeader.parse({ "Idempotency-Key": key }) };
  return fetch(address, { method: "POST", headers: all, body: JSON.stringify(body) });
}

function address(customerId: number): string {
  return `${service}/v1/customers/${customerId}/trades`;
}
