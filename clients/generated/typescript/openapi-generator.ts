import { Configuration, ProblemFromJSON, ResponseError, TradesApi } from "../build/openapi-generator-typescript-fetch";
import { scenario, service, token, type Answer } from "./scenario";

const trades = new TradesApi(new Configuration({ basePath: service, accessToken: token }));

await scenario({
  append: (customerId, tradeInput, idempotencyKey) => answer(trades.appendTrades({ customerId, tradeInput, idempotencyKey })),
  appendMany: (customerId, tradeInput, idempotencyKey) => answer(trades.appendTradeBatch({ customerId, tradeInput, idempotencyKey })),
  page: (customerId, page) => answer(trades.listTrades({ customerId, page })),
  trade: (customerId, seq) => answer(trades.getTrade({ customerId, seq })),
});

async function answer<T>(call: Promise<T>): Promise<Answer<T>> {
  try {
    return { data: await call };
  } catch (error) {
    if (!(error instanceof ResponseError)) throw error;
    return { error: ProblemFromJSON(await error.response.json()) };
  }
}
