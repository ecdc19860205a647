// Writes the public key of an issuer into the file that is named, and prints a token of this issuer that allows everything.

import { generateKeyPairSync, sign } from "node:crypto";
import { writeFileSync } from "node:fs";

const [, , file, issuer, audience] = process.argv;
const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
writeFileSync(file, JSON.stringify({ keys: [{ ...publicKey.export({ format: "jwk" }), kid: "only", alg: "ES256", use: "sig" }] }));

const iat = Math.floor(Date.now() / 1000);
const who = { iss: issuer, aud: audience, sub: "generated", client_id: "generated", jti: "1", iat, exp: iat + 24 * 3600 };
const parts = [{ alg: "ES256", typ: "at+jwt", kid: "only" }, { ...who, scope: "read append list views metrics admin", customers: "*" }];
const text = parts.map((part) => Buffer.from(JSON.stringify(part)).toString("base64url")).join(".");
console.log(`${text}.${sign("sha256", Buffer.from(text), { key: privateKey, dsaEncoding: "ieee-p1363" }).toString("base64url")}`);
