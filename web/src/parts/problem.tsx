// What went wrong, in the service's own words.

import { GoneError, HttpError, ProblemError } from "@pagebucket/client";
import type { ComponentChildren } from "preact";
import { BASE } from "../api/service";
import { number } from "../format";
import { Text } from "./text";

export function Problem({ error, children }: { error: unknown; children?: ComponentChildren }) {
  const { title, detail, more } = words(error);
  return (
    <div class="problem" role="alert">
      <strong>
        <Text of={title} />
      </strong>
      <p>
        <Text of={detail} />
      </p>
      {error instanceof ProblemError && error.errors.length > 1 && (
        <ul>
          {error.errors.map(({ parameter, pointer, detail }, index) => (
            <li key={index}>
              <code>
                <Text of={parameter ?? pointer ?? ""} />
              </code>{" "}
              <Text of={detail} />
            </li>
          ))}
        </ul>
      )}
      {children}
      {more}
    </div>
  );
}

function words(error: unknown) {
  if (error instanceof ProblemError) {
    const known = /^\/problems#[a-z-]+$/.test(error.type);
    const more = (
      <p class="quiet">
        {known && <a href={BASE + error.type}>About this error</a>}{" "}
        {error.requestId && (
          <>
            request{" "}
            <code>
              <Text of={error.requestId} />
            </code>
          </>
        )}
      </p>
    );
    return { title: error.title, detail: error.detail, more };
  }
  if (error instanceof HttpError) return { title: `HTTP status ${error.status}`, detail: error.body.slice(0, 500), more: null };
  if (error instanceof TypeError)
    return { title: "The service was not reached", detail: "Is this machine offline, or has the service stopped?", more: null };
  return { title: "This did not work", detail: String(error), more: null };
}

/** What went wrong, if anything did. `children` may help where it is not for good. */
export function Failure({ error, href, children }: { error: unknown; href: (page: number) => string; children?: ComponentChildren }) {
  if (error === undefined) return null;
  return error instanceof GoneError ? <Gone error={error} href={href} /> : <Problem error={error}>{children}</Problem>;
}

/** What is left of a history whose beginning, or all of it, is deleted. */
export function Gone({ error, href }: { error: GoneError; href: (page: number) => string }) {
  const { firstPage, firstSeq } = error;
  return (
    <Problem error={error}>
      {firstPage !== undefined && (
        <p>
          This history begins with <a href={href(firstPage)}>page {number(firstPage)}</a>
          {firstSeq !== undefined && <>, at number {number(firstSeq)}</>}.
        </p>
      )}
    </Problem>
  );
}
