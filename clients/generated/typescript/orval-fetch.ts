import { appendTradeBatch, appendTrades, getTrade, listTrades } from "../build/orval-fetch/client";
import { headers, scenario } from "./scenario";

await scenario({
  async append(customerId, trade, key) {
    const answer = await appendTrades(customerId, trade, undefined, { "Idempotency-Key": key }, { headers });
    return answer.status === 201 ? answer : { error: answer.data };
  },
  async appendMany(customerId, trades, key) {
    const answer = await appendTradeBatch(customerId, trades, undefined, { "Idempotency-Key": key }, { headers });
    return answer.status === 201 ? answer : { error: answer.data };
  },
  async page(customerId, page) {
    const answer = await listTrades(customerId, { page }, undefined, { headers });
    if (answer.status === 304) throw new Error("nothing was asked conditionally");
    return answer.status === 200 || answer.status === 206 ? answer : { error: answer.data };
  },
  async trade(customerId, seq) {
    const answer = await getTrade(customerId, seq, { headers });
    if (answer.status === 304) throw new Error("nothing was asked conditionally");
    return answer.status === 200 ? answer : { error: answer.data };
  },
});
