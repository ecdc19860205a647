import { appendTradeBatch, appendTrades, getTrade, listTrades } from "../build/hey-api";
import { client } from "../build/hey-api/client.gen";
import { scenario, service, token } from "./scenario";

client.setConfig({ baseUrl: service, auth: token });

await scenario({
  append: (customerId, body, key) => appendTrades({ path: { customerId }, headers: { "Idempotency-Key": key }, body }),
  appendMany: (customerId, body, key) => appendTradeBatch({ path: { customerId }, headers: { "Idempotency-Key": key }, body }),
  page: (customerId, page) => listTrades({ path: { customerId }, query: { page } }),
  trade: (customerId, seq) => getTrade({ path: { customerId, seq } }),
});
