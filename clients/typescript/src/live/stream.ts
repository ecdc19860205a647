import { createParser, type EventSourceMessage } from "eventsource-parser";

import { GoneError } from "../errors.js";
import type { Service } from "../history.js";
import { send } from "../send.js";
import { type Connection, Reconnect } from "./connection.js";

/** Milliseconds for the first bytes, which the service sends at once. If they take longer, a proxy may hold them back. */
const FIRST_BYTES = 10_000;

/** One event: what it says, or that the next items are deleted. */
export interface StreamEvent {
  /** Absent if it resumes nothing. */
  id: string | undefined;
  content: any;
  gone?: GoneError;
}

/** The events of one stream of Server-Sent Events, which goes on after the event `last`. It ends with an error, always. */
export async function* streamed(service: Service, path: string, last: string | undefined, connection: Connection): AsyncGenerator<StreamEvent, void> {
  const { attempt, timeout, onOpen } = connection;
  const headers = { Accept: "text/event-stream", ...(last !== undefined && { "Last-Event-ID": last }) };
  const begin = async () => {
    const response = await send(service, path, { headers, signal: attempt.signal });
    const type = response.headers.get("content-type");
    // Without TLS, Chromium takes a connection that closes inside the head for a complete answer.
    if (!type) throw new TypeError("the head of the stream is cut off");
    if (!type.startsWith("text/event-stream")) throw new Reconnect(0, true);
    const reader = response.body!.getReader();
    return { response, reader, first: await reader.read() };
  };
  const { response, reader, first } = await attempt.within(Math.min(timeout, FIRST_BYTES), begin).catch(heldBack);
  const events: EventSourceMessage[] = [];
  const parser = createParser({ onEvent: (event) => events.push(event), onRetry: (time) => (connection.retry = time) });
  const decoder = new TextDecoder();
  for (let { done, value } = first; !done; { done, value } = await attempt.within(timeout, () => reader.read())) {
    onOpen();
    parser.feed(decoder.decode(value, { stream: true }));
    for (const { event, data, id } of events.splice(0)) {
      const content = JSON.parse(data);
      if (!event || event === "position") yield { id, content };
      else if (event === "end" && content.reason === "epoch") throw new Error("a backup was restored: numbers of items may mean others");
      else if (event === "end") throw new Reconnect();
      else if (event === "gone") yield { id, content, gone: new GoneError(response.headers, data, content) };
    }
  }
  throw new TypeError("the stream broke off");
}

function heldBack(error: unknown): never {
  if (error instanceof DOMException && error.name === "TimeoutError") throw new Reconnect(0, true);
  throw error;
}
