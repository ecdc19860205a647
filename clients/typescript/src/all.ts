import type { History } from "./history.js";
import { list, query } from "./read.js";
import { Attempt, pause, send, sleep } from "./send.js";
import type { ExportParameters, Stored } from "./types.js";

export interface ExportOptions {
  /** How often a broken export may be resumed. Default: 5. */
  resumes?: number | undefined;
  /** Milliseconds to wait for the next piece of the export before it counts as broken. Default: 40,000. */
  timeout?: number | undefined;
  signal?: AbortSignal | undefined;
}

/**
 * All items, in order of `seq`, from one streamed export. When it breaks off, it is resumed after the last complete row:
 * every item comes once. After `resumes` resumptions, the next break is thrown.
 */
export async function* all<Item extends Stored, NewItem, Owner>(
  history: History<Item, NewItem, Owner>,
  { after = 0, ...span }: ExportParameters = {},
  { resumes = 5, timeout = 40_000, signal }: ExportOptions = {},
): AsyncGenerator<Item & Owner, void> {
  for (let resumed = 0, inVain = 0; ; resumed++) {
    const attempt = new Attempt(signal);
    const batches = rows(history, { after, ...span }, timeout, attempt);
    try {
      for (;;) {
        let batch;
        try {
          batch = await batches.next();
        } catch (error) {
          const wait = pause(error, inVain++);
          if (wait === undefined || resumed >= resumes) throw error;
          await sleep(wait, signal);
          break;
        }
        if (batch.done) return;
        for (const row of batch.value) {
          inVain = 0;
          after = row.seq;
          yield row;
        }
      }
    } finally {
      attempt.end();
    }
  }
}

/** The rows of one export, as they arrive. A row that is cut is not one of them. */
async function* rows<Item extends Stored, NewItem, Owner>(
  history: History<Item, NewItem, Owner>,
  parameters: ExportParameters,
  timeout: number,
  attempt: Attempt,
): AsyncGenerator<(Item & Owner)[], void> {
  const { signal } = attempt;
  const path = `${history.path}/export.ndjson${query(parameters)}`;
  const response = await attempt.within(timeout, () => send(history.service, path, { signal }));
  const reader = response.body!.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  let none = true;
  for (;;) {
    const { done, value } = await attempt.within(timeout, () => reader.read());
    if (done) break;
    none = false;
    const lines = (rest + decoder.decode(value, { stream: true })).split("\n");
    rest = lines.pop()!;
    yield lines.map((line) => JSON.parse(line));
  }
  // Without TLS, Chromium takes a connection that closes inside the head for a complete answer without a body. So an export
  // without rows is believed when a listing has none either.
  const one = { ...parameters, limit: 1 };
  const lost = rest || (none && (await attempt.within(timeout, () => list(history, one, { signal }))).items.length);
  if (lost) throw new TypeError("the export broke off");
}
