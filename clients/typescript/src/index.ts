// Functions instead of methods: a bundler drops each function that a page does not use.
export { all, type ExportOptions } from "./all.js";
export { append, newKey, NotAcknowledgedError, type AppendOptions } from "./append.js";
export { GoneError, HttpError, ProblemError } from "./errors.js";
export { history, trades, type History, type Service } from "./history.js";
export { followQuery } from "./follow.js";
export {
  live,
  liveBatches,
  liveMany,
  liveOwners,
  type LiveBatch,
  type LiveManyBatch,
  type LiveOptions,
  type LiveParameters,
  type LiveState,
  type OwnersBatch,
  type WatchedHistory,
} from "./live.js";
export { historyKey, infiniteQuery, listQuery, pageQuery } from "./query.js";
export { item, list, newest, page, pages, summary, summaryOfAll, windows, type ReadOptions } from "./read.js";
export type * from "./types.js";
