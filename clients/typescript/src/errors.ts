import type { Problem } from "./types.js";

/** An answer that is not a success: a `ProblemError` if the service explains it, otherwise probably from a proxy. */
export class HttpError extends Error {
  override readonly name: string = "HttpError";
  /** The request's id, which the service's log has too. */
  readonly requestId: string | undefined;
  /** Seconds to wait before a repeat, if the answer says so. */
  readonly retryAfter: number | undefined;
  /** Of an append: its key. The same items may be sent again with it. */
  key?: string;

  constructor(
    readonly status: number,
    headers: Headers,
    /** The answer's text. */
    readonly body: string,
    message = `HTTP status ${status}`,
  ) {
    super(message);
    this.requestId = headers.get("x-request-id") ?? undefined;
    this.retryAfter = seconds(headers.get("retry-after"));
  }
}

/** A problem (RFC 9457) that the service answers with. */
export class ProblemError extends HttpError {
  override readonly name: string = "ProblemError";
  /** The kind of problem, as the address of its description, such as `/problems#invalid-item`. */
  readonly type: string;
  /** The kind in words. */
  readonly title: string;
  /** What went wrong this time. */
  readonly detail: string;
  /** What is wrong with the request, at most 100 faults. */
  readonly errors: NonNullable<Problem["errors"]>;

  constructor(
    headers: Headers,
    body: string,
    /** All that the service says, such as the `ranges` that are stored. */
    readonly problem: Problem,
  ) {
    const { type, title, detail, errors = [] } = problem;
    // Many frameworks show only the message.
    const [first] = errors;
    const fault = first && [first.parameter ?? first.pointer, first.detail].filter(Boolean).join(" ");
    super(problem.status, headers, body, `${title}: ${fault ?? detail}`);
    this.type = type;
    this.title = title;
    this.detail = detail;
    this.errors = errors;
  }
}

/** 410: what the request asks for was there, and is deleted. */
export class GoneError extends ProblemError {
  override readonly name = "GoneError";

  /** The first page that is still there. `undefined` if the owner is erased: then nothing is. */
  get firstPage(): number | undefined {
    return this.problem.firstPage;
  }

  /** When the owner was erased, if it is. */
  get erasedAt(): string | undefined {
    return this.problem.erasedAt;
  }

  /** The `seq` of the first item of that page. */
  get firstSeq(): number | undefined {
    return this.problem.firstSeq;
  }
}

/** What an answer that is not a success is thrown as. */
export async function failure(response: Response): Promise<HttpError> {
  const { status, headers } = response;
  const body = await response.text();
  if (headers.get("content-type")?.startsWith("application/problem+json")) {
    const problem = JSON.parse(body);
    // Every problem of the service has both; that of a proxy need not.
    if (problem?.status === status && problem.title) return new (status === 410 ? GoneError : ProblemError)(headers, body, problem);
  }
  return new HttpError(status, headers, body);
}

/** `Retry-After` is a number of seconds, or (of some proxies) a date. */
function seconds(value: string | null): number | undefined {
  if (!value) return undefined;
  const seconds = Number(value);
  const until = Number.isNaN(seconds) ? (Date.parse(value) - Date.now()) / 1000 : seconds;
  return Number.isNaN(until) ? undefined : Math.max(0, until);
}
