import { MutationObserver, QueryClient } from "@tanstack/react-query";
import {
  getAppendTradeBatchMutationOptions, getAppendTradesMutationOptions, getGetTradeQueryOptions, getListTradesQueryOptions,
} from "../build/orval-react-query/client";
import { headers, scenario } from "./scenario";

// What the generated hooks do, without a component.
const client = new QueryClient();

await scenario({
  async append(customerId, data, key) {
    const mutation = new MutationObserver(client, getAppendTradesMutationOptions({ fetch: { headers } }));
    const answer = await mutation.mutate({ customerId, data, headers: { "Idempotency-Key": key } });
    return answer.status === 201 ? answer : { error: answer.data };
  },
  async appendMany(customerId, data, key) {
    const mutation = new MutationObserver(client, getAppendTradeBatchMutationOptions({ fetch: { headers } }));
    const answer = await mutation.mutate({ customerId, data, headers: { "Idempotency-Key": key } });
    return answer.status === 201 ? answer : { error: answer.data };
  },
  async page(customerId, page) {
    const answer = await client.fetchQuery(getListTradesQueryOptions(customerId, { page }, undefined, { fetch: { headers } }));
    if (answer.status === 304) throw new Error("nothing was asked conditionally");
    return answer.status === 200 || answer.status === 206 ? answer : { error: answer.data };
  },
  async trade(customerId, seq) {
    const answer = await client.fetchQuery(getGetTradeQueryOptions(customerId, seq, { fetch: { headers } }));
    if (answer.status === 304) throw new Error("nothing was asked conditionally");
    return answer.status === 200 ? answer : { error: answer.data };
  },
});
