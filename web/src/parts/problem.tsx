// What went wrong, in the service's own words.

import { GoneError, HttpError, ProblemError } from "@pagebucket/client";
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { BASE, docsNeedToken, readText } from "../api/service";
import { number } from "../format";
import { isPassing } from "./loaded";
import { Text } from "./text";
import { Time, ZoneName } from "./zone";

export function Problem({ error, children }: { error: unknown; children?: ComponentChildren }) {
  // The form asks for another token, wherever that was refused.
  if (error instanceof ProblemError && error.status === 401) return null;
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
    const [, slug] = /^\/problems#([a-z-]+)$/.exec(error.type) ?? [];
    const more = (
      <div class="quiet">
        {slug && <About slug={slug} />}{" "}
        {error.requestId && (
          <>
            request{" "}
            <code>
              <Text of={error.requestId} />
            </code>
          </>
        )}
      </div>
    );
    return { title: error.title, detail: error.detail, more };
  }
  if (error instanceof HttpError) return { title: `HTTP status ${error.status}`, detail: error.body.slice(0, 500), more: null };
  if (error instanceof TypeError)
    return { title: "The service was not reached", detail: "Is this machine offline, or has the service stopped?", more: null };
  return { title: "This did not work", detail: String(error), more: null };
}

/** What to do about a kind of problem. A link carries no token, so what needs one is read and shown here. */
function About({ slug }: { slug: string }) {
  const [text, setText] = useState("…");
  if (!docsNeedToken()) return <a href={`${BASE}/problems#${slug}`}>About this error</a>;
  const load = async () => {
    try {
      const page = new DOMParser().parseFromString(await readText("/problems"), "text/html");
      setText(page.querySelector(`#${slug} > p:last-child`)?.textContent ?? "");
    } catch (error) {
      setText(String(error));
    }
  };
  return (
    <details onToggle={(event) => event.currentTarget.open && load()}>
      <summary>About this error</summary>
      <p>
        <Text of={text} />
      </p>
    </details>
  );
}

interface FailureProps {
  error: unknown;
  /** The address of a page, of a history that begins later. */
  href?: (page: number) => string;
  /** What may help where it is not for good. */
  children?: ComponentChildren;
}

/** What went wrong with a read, if anything did. */
export function Failure({ error, href, children }: FailureProps) {
  if (error === undefined) return null;
  if (error instanceof GoneError) return <Gone error={error} href={href} />;
  return (
    <Problem error={error}>
      {isPassing(error) && <p>It is read again by itself as soon as the service answers.</p>}
      {children}
    </Problem>
  );
}

/** What is left of a history whose beginning, or all of it, is deleted. */
export function Gone({ error, href }: { error: GoneError; href: FailureProps["href"] }) {
  const { firstPage, firstSeq, erasedAt } = error;
  if (firstPage === undefined)
    return (
      <p class="note" role="status">
        <strong>
          Erased
          {erasedAt !== undefined && (
            <>
              {" "}
              on <Time of={erasedAt} /> <ZoneName />
            </>
          )}
          .
        </strong>{" "}
        Nothing is kept of this owner, and nothing can be appended.
      </p>
    );
  const page = `page ${number(firstPage)}`;
  return (
    <Problem error={error}>
      <p>
        This history begins with {href ? <a href={href(firstPage)}>{page}</a> : page}
        {firstSeq !== undefined && <>, at number {number(firstSeq)}</>}.
      </p>
    </Problem>
  );
}
