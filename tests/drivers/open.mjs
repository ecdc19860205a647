// Opens every collection of a database with the driver for Node.js, and prints their names as JSON. Arguments: a directory of
// packages, a URI, the name of the database.
import { createRequire } from "node:module";

const [, , packages, uri, name] = process.argv;
const { MongoClient } = createRequire(`${packages}/`)("mongodb");
const client = new MongoClient(uri);
const database = client.db(name);
const names = [];
for (const found of await database.listCollections().toArray()) {
  const collection = database.collection(found.name);
  if (found.type !== "view") await collection.indexes();
  await collection.options();
  await collection.findOne();
  names.push(found.name);
}
console.log(JSON.stringify(names.sort()));
await client.close();
