// An issuer of access tokens (oidc-provider) on a free port of this machine, for tests.
//
// Its first line of output is its address. Each line of input is a list of the ids of keys, such as `b a`: it publishes these
// keys from then on, and signs with the first one. It answers `ok`. A key is made when it is first named. To the line `fetched`
// it answers how often its keys were fetched since it published them.
// Clients get tokens by their credentials: client_id=ID, client_secret=secret, scope and resource as in RFC 8707. The claim
// `customers` of a token is the part of the client's id after the last hyphen. Users, whatever their names and passwords, sign in to
// the public client `explorer`, and use the histories of all customers.
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import { createInterface } from "node:readline";

// Its notices are not for the test.
console.info = console.error;

// The directory of packages is the argument.
const { default: Provider } = await import(`${process.argv[2]}/oidc-provider/lib/index.js`);

const AUDIENCE = "https://api.example";
const SCOPES = "read append list views metrics admin";
const made = new Map();

function key(kid) {
  if (!made.has(kid)) {
    const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
    made.set(kid, { ...privateKey.export({ format: "jwk" }), kid, alg: "RS256", use: "sig" });
  }
  return made.get(kid);
}

let answer;
let fetched = 0;
const server = createServer((request, response) => {
  fetched += request.url === "/jwks" ? 1 : 0;
  answer(request, response);
});
// By default Node.js closes a connection that was idle for five seconds, perhaps just when it is used again.
server.keepAliveTimeout = 600_000;
server.listen(0, "127.0.0.1");
await once(server, "listening");
const issuer = `http://127.0.0.1:${server.address().port}`;

function publish(kids) {
  const keys = kids.map(key);
  const provider = new Provider(issuer, {
    jwks: { keys },
    clients: [
      ...["ann-7", "bob-8"].map((client_id) => ({
        client_id,
        client_secret: "secret",
        grant_types: ["client_credentials"],
        redirect_uris: [],
        response_types: [],
      })),
      {
        client_id: "explorer",
        // Of such a client the port of an address of this machine does not matter.
        application_type: "native",
        token_endpoint_auth_method: "none",
        redirect_uris: ["http://127.0.0.1/"],
      },
    ],
    clientBasedCORS: () => true,
    cookies: { keys: ["of tests"] },
    extraTokenClaims: (_, token) => {
      const all = { customers: "*", rooms: "*", accounts: "*" };
      return token.accountId ? all : { customers: [token.clientId.split("-").pop()] };
    },
    features: {
      clientCredentials: { enabled: true },
      // Its pages ask for a name, any password, and consent.
      devInteractions: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: () => ({
          scope: SCOPES,
          audience: AUDIENCE,
          accessTokenFormat: "jwt",
          jwt: { sign: { alg: "RS256" } },
        }),
      },
    },
  });
  answer = provider.callback();
  fetched = 0;
}

publish(["first"]);
console.log(issuer);
for await (const line of createInterface({ input: process.stdin })) {
  if (line === "fetched") {
    console.log(fetched);
  } else {
    publish(line.split(" "));
    console.log("ok");
  }
}
process.exit(0);
