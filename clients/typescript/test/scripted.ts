// A server whose answers a test writes in advance, and which notes what it was asked.

import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestContext } from "node:test";

export type Answer = (response: ServerResponse) => void;

export interface Asked {
  /** When it was asked, in milliseconds. */
  at: number;
  method: string;
  url: string;
  headers: IncomingHttpHeaders;
  body: string;
  /** When the connection of the answer has closed. */
  closed: Promise<void>;
}

export interface Scripted {
  baseUrl: string;
  asked: Asked[];
}

/** Gives each answer once, in their order, and the last one to all further requests. */
export async function scripted(t: TestContext, ...answers: [Answer, ...Answer[]]): Promise<Scripted> {
  const asked: Asked[] = [];
  const server = createServer(async (request, response) => {
    const at = performance.now();
    const closed = new Promise<void>((resolve) => response.on("close", resolve));
    let body = "";
    for await (const piece of request) body += piece;
    const answer = answers[Math.min(asked.length, answers.length - 1)]!;
    asked.push({ at, method: request.method!, url: request.url!, headers: request.headers, body, closed });
    answer(response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return { baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
}

export function json(body: unknown, status = 200, headers = {}): Answer {
  return (response) => {
    response.writeHead(status, { "content-type": "application/json", ...headers });
    response.end(JSON.stringify(body));
  };
}

export function problem(status: number, slug: string, headers = {}, members = {}): Answer {
  const body = { type: `/problems#${slug}`, title: "A title", status, detail: "A detail.", instance: "/", requestId: "r1", ...members };
  return json(body, status, { "content-type": "application/problem+json", "x-request-id": "r1", ...headers });
}

/** Closes the connection without an answer. */
export const cut: Answer = (response) => response.destroy();

/** Begins an answer, and closes the connection before its end. */
export function cutAfter(text: string, status = 200): Answer {
  return (response) => {
    response.writeHead(status);
    response.write(text, () => response.destroy());
  };
}

/** Never answers. */
export const silent: Answer = () => {};
