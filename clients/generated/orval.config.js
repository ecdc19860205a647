// The address of the service is known only when the clients run. `headers`: Idempotency-Key becomes a parameter.
const input = process.env.OPENAPI;
const client = { headers: true, baseUrl: { runtime: "process.env.PAGEBUCKET_URL" } };

export default {
  fetch: { input, output: { target: "build/orval-fetch/client.ts", client: "fetch", ...client } },
  reactQuery: { input, output: { target: "build/orval-react-query/client.ts", client: "react-query", httpClient: "fetch", ...client } },
  zod: { input, output: { target: "build/orval-zod/client.ts", client: "zod", override: { zod: { generateEachHttpStatus: true } } } },
};
