import createClient from "openapi-fetch";
import type { paths } from "../build/openapi-typescript/schema";
import { headers, scenario, service } from "./scenario";

const client = createClient<paths>({ baseUrl: service, headers });

await scenario({
  append: (customerId, body, key) =>
    client.POST("/v1/customers/{customerId}/trades", { params: { path: { customerId }, header: { "Idempotency-Key": key } }, body }),
  appendMany: (customerId, body, key) =>
    client.POST("/v1/customers/{customerId}/trades/batch", { params: { path: { customerId }, header: { "Idempotency-Key": key } }, body }),
  page: (customerId, page) => client.GET("/v1/customers/{customerId}/trades", { params: { path: { customerId }, query: { page } } }),
  trade: (customerId, seq) => client.GET("/v1/customers/{customerId}/trades/{seq}", { params: { path: { customerId, seq } } }),
});
