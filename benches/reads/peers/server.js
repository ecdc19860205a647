'use strict';
// Pages of trades out of MongoDB by a pagination library from npm, served as an application would serve them: with
// Fastify, in one process. The benchmark of reads starts it:
//
//   NODE_PATH=…/node_modules node server.js LIBRARY CONNECTION_STRING DATABASE
//
// It prints its URL on its first line, and ends when its standard input does.

const fastify = require('fastify');

const [library, uri, database] = process.argv.slice(2);

// So that Fastify writes the answers with its compiled serializers, as its manual advises.
const [text, integer] = [{ type: 'string' }, { type: 'integer' }];
const date = { type: 'string', format: 'date-time' };
const trade = { type: 'object', properties: { _id: text, type: text, ticker: text, qty: integer, date } };
const listing = {
  type: 'object',
  properties: {
    customerId: integer,
    page: integer,
    totalTrades: integer,
    totalPages: integer,
    items: { type: 'array', items: trade },
    links: { type: 'object', properties: { next: text } },
  },
};

// Pages by number, with totals: skip, limit and countDocuments.
async function mongoosePaginate() {
  const mongoose = require('mongoose');
  const schema = new mongoose.Schema(
    { customerId: Number, type: String, ticker: String, qty: Number, date: Date },
    { collection: 'trades', versionKey: false, autoIndex: false },
  );
  schema.plugin(require('mongoose-paginate-v2'));
  await mongoose.connect(uri, { dbName: database, maxPoolSize: 64 });
  const Trade = mongoose.model('Trade', schema);
  return {
    async list(customerId, { page = 1, order }) {
      // Plain objects rather than mongoose's documents: the faster of the two.
      const options = { page, limit: 10, sort: { _id: order === 'desc' ? -1 : 1 }, lean: true, leanWithId: false };
      const { docs, totalDocs, totalPages, nextPage } = await Trade.paginate({ customerId }, options);
      const links = nextPage ? { next: `/v1/customers/${customerId}/trades?page=${nextPage}` } : {};
      return { customerId, page, totalTrades: totalDocs, totalPages, items: docs, links };
    },
    async append(customerId, { type, ticker, qty }) {
      await Trade.create({ customerId, type, ticker, qty, date: new Date() });
    },
  };
}

// A walk may begin after any trade: its id is made the token that the library would have given.
function token(after) {
  return after?.length === 24 ? Buffer.from(JSON.stringify({ $oid: after })).toString('base64url') : after;
}

// Pages by cursor, without totals. Only read.
async function mongoCursorPagination() {
  const { MongoClient } = require('mongodb');
  const { find } = require('mongo-cursor-pagination');
  const client = await new MongoClient(uri, { maxPoolSize: 64 }).connect();
  const trades = client.db(database).collection('trades');
  return {
    async list(customerId, { after, order }) {
      const params = { query: { customerId }, limit: 10, sortAscending: order !== 'desc', next: token(after) };
      const { results, next, hasNext } = await find(trades, params);
      const links = hasNext ? { next: `/v1/customers/${customerId}/trades?after=${next}` } : {};
      return { customerId, items: results, links };
    },
  };
}

async function main() {
  const open = { 'mongoose-paginate-v2': mongoosePaginate, 'mongo-cursor-pagination': mongoCursorPagination };
  const history = await open[library]();
  const app = fastify();
  const params = { type: 'object', properties: { customerId: integer } };
  const querystring = { type: 'object', properties: { page: { type: 'integer', minimum: 1 } } };
  const path = '/v1/customers/:customerId/trades';
  app.get(path, { schema: { params, querystring, response: { 200: listing } } }, (request) =>
    history.list(request.params.customerId, request.query));
  app.post(path, { schema: { params } }, async (request, reply) => {
    await history.append(request.params.customerId, request.body);
    return reply.code(201).send({ customerId: request.params.customerId });
  });
  await app.listen({ host: '127.0.0.1', port: 0 });
  console.log(`http://127.0.0.1:${app.server.address().port}`);
  process.stdin.resume().on('end', () => process.exit());
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
