// Appends an item by a form that its schema makes.

import { append, ProblemError } from "@pagebucket/client";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { addressOf } from "../address";
import { historyOf } from "../api/read";
import { number, singular } from "../format";
import { announce } from "../parts/announce";
import { Curl, curlOf } from "../parts/curl";
import { Problem } from "../parts/problem";
import { Text } from "../parts/text";
import { ZoneChoice } from "../parts/zone";
import type { TabProps } from "./tab";
import { changed, emptyOf, requestOf, storeDraft, storedDraft, typedOf, valueOf, type Draft, type Typed } from "./draft";
import { Field } from "./field";

export function AppendTab({ definition, owner, asked }: Pick<TabProps, "definition" | "owner" | "asked">) {
  const { newItem, examples, owners, items } = definition;
  const history = useMemo(() => historyOf(definition, owner), [definition, owner]);
  const [draft, setDraft] = useState<Draft>(() => storedDraft(history.path) ?? { typed: emptyOf(newItem) });
  const [error, setError] = useState<unknown>();
  const [sending, setSending] = useState(false);
  const busy = useRef(false);
  const place = useRef<HTMLElement | null>(null);
  const setPlace = (element: HTMLElement | null) => {
    place.current = element;
  };
  // The form and what says that an item is stored replace each other: the focus goes on from one to the other.
  const isReplaced = useRef(false);
  const one = singular(items);

  const keep = (next: Draft) => {
    storeDraft(history.path, next);
    setDraft(next);
  };
  const edit = (typed: Typed) => keep({ ...draft, typed });
  const body = JSON.stringify(valueOf(newItem, draft.typed));
  const unanswered = draft.sent?.body === body && draft.sent.seq === undefined && !sending && error === undefined;
  const faults = error instanceof ProblemError ? error.errors : [];
  const known = new Set(pointersOf(draft.typed));
  const elsewhere = faults.filter(({ pointer }) => pointer === undefined || !known.has(pointer));

  const submit = async (event: Event) => {
    event.preventDefault();
    if (busy.current || draft.sent?.seq !== undefined) return;
    busy.current = true;
    const sent = requestOf(draft, body);
    keep({ ...draft, sent });
    setSending(true);
    setError(undefined);
    try {
      const { ranges } = await append(history, JSON.parse(sent.body), { key: sent.key });
      const seq = ranges[0]!.firstSeq;
      isReplaced.current = true;
      keep({ ...draft, sent: { ...sent, seq } });
      announce(`Stored as number ${seq}`);
    } catch (error) {
      // Such an item was not stored by an earlier attempt either. After any other error it may be.
      if (error instanceof ProblemError && error.status === 422) keep({ typed: draft.typed });
      setError(error);
    } finally {
      busy.current = false;
      setSending(false);
    }
  };
  useEffect(() => {
    if (error !== undefined) place.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus();
  }, [error]);
  useEffect(() => {
    if (isReplaced.current) place.current?.querySelector<HTMLElement>("input, select, textarea, button")?.focus();
    isReplaced.current = false;
  }, [draft.sent?.seq]);
  const again = (typed: Typed) => {
    isReplaced.current = true;
    keep({ typed });
  };

  if (draft.sent?.seq !== undefined) {
    const { seq, body, key } = draft.sent;
    return (
      <div ref={setPlace} class="card narrow stored" role="status">
        <h2>
          Stored as <a href={addressOf([owners, owner, items, seq])}>number {number(seq)}</a>
        </h2>
        <p class="quiet">It is on the journals of a majority of the database's nodes, and never changes.</p>
        <div class="row">
          <button type="button" onClick={() => again(emptyOf(newItem))}>
            Append another
          </button>
          <button type="button" title={`To correct what is stored, as another ${one}`} onClick={() => again(draft.typed)}>
            Append one like it
          </button>
          <Curl commands={[curlOf(history.path, body, key), ...asked]} />
        </div>
      </div>
    );
  }
  return (
    <form ref={setPlace} class="card append" onSubmit={submit} noValidate aria-label={`Append a ${one}`}>
      {definition.about && (
        <p class="quiet">
          <Text of={definition.about} />
        </p>
      )}
      {unanswered && (
        <p class="note" role="status">
          This was sent, and its answer was not seen. It may be sent again: it is stored once.
        </p>
      )}
      <Field
        schema={newItem}
        name=""
        typed={draft.typed}
        path={[]}
        required
        onTyped={(path, typed) => edit(changed(draft.typed, path, typed))}
        faults={faults}
      />
      <ZoneChoice />
      {error !== undefined && (faults.length === 0 || elsewhere.length > 0) && <Problem error={error} />}
      <p class="quiet">What is appended stays: it can be neither changed nor taken back.</p>
      <div class="row">
        <button type="submit" class="main" disabled={sending}>
          {sending ? "Appending …" : unanswered ? "Send it again" : "Append"}
        </button>
        {examples[0] && (
          <button type="button" onClick={() => edit(typedOf(newItem, examples[0]))}>
            Fill in the example
          </button>
        )}
        <button
          type="button"
          onClick={() => {
            setError(undefined);
            keep({ typed: emptyOf(newItem) });
          }}
        >
          Clear
        </button>
        <Curl commands={[curlOf(history.path, body, draft.sent?.body === body ? draft.sent.key : undefined), ...asked]} />
      </div>
    </form>
  );
}

/** The JSON Pointers of all that has a field. */
function pointersOf(typed: Typed, at = ""): string[] {
  if (typeof typed === "string") return [at];
  const entries: [string | number, Typed][] = Array.isArray(typed) ? typed.map((one, index) => [index, one]) : Object.entries(typed);
  return [...(at ? [at] : []), ...entries.flatMap(([name, one]) => pointersOf(one, `${at}/${name}`))];
}
