// Reads a selection window by window. A request examines a bounded number of pages, so a rare value takes many of them.

import { list } from "@pagebucket/client";
import { useEffect, useState } from "preact/hooks";
import type { AnyHistory, Item } from "../api/read";
import { isPassing } from "../parts/loaded";
import { pathOf, selectionQuery, type Parameters } from "./parameters";
import { MOST_IN_WINDOW, withWindow, type Begin, type Cursor, type Links, type Search } from "./view-state";

/** What has been found, and the paths of the requests so far. */
export interface Found extends Search<Item> {
  paths: string[];
}

/** Reads on until there are `most` items or everything is examined. Tells what there is after each window. */
export async function* searched(
  history: AnyHistory,
  parameters: Parameters,
  most: number,
  signal: AbortSignal,
  begun?: Found,
): AsyncGenerator<Found, void> {
  const begin = beginOf(parameters);
  for (let found = begun; ; ) {
    const limit = Math.min(most - (found?.items.length ?? 0), MOST_IN_WINDOW);
    if (limit <= 0 || (found && found.ahead === undefined)) return;
    const path = windowPath(history.path, parameters, limit, found?.ahead ?? begin);
    const { items, links } = await list(history, path, { signal });
    found = { ...withWindow(begin, found, { items: items as Item[], links: links as Links }), paths: [...(found?.paths ?? []), path] };
    yield found;
  }
}

export function beginOf({ order, after, before }: Parameters): Begin {
  return { order, ...(after === undefined ? {} : { after }), ...(before === undefined ? {} : { before }) };
}

function windowPath(path: string, parameters: Parameters, limit: number, { after, before }: Cursor): string {
  return pathOf(path, {
    ...selectionQuery(parameters),
    limit: String(limit),
    ...(after === undefined ? {} : { after: String(after) }),
    ...(before === undefined ? {} : { before: String(before) }),
  });
}

/** Milliseconds after which a search goes on that the service could not answer. */
const PAUSE = 3000;

interface State {
  /** What it was asked for. */
  key: string;
  found: Found | undefined;
  isRunning: boolean;
  error: unknown;
}

/** A search that goes on by itself until there are `rows` items, and can be stopped. It begins again when the key changes. */
export function useSearch(key: string, history: AnyHistory, parameters: Parameters, rows: number) {
  const [state, setState] = useState<State>({ key, found: undefined, isRunning: true, error: undefined });
  const [turn, setTurn] = useState({ key, number: 0, stopped: false });
  const isCurrent = state.key === key;
  const set = (stopped: boolean) => () => setTurn({ key, number: turn.number + 1, stopped });
  const isStopped = turn.key === key && turn.stopped;
  useEffect(() => {
    if (isStopped) return;
    const controller = new AbortController();
    const { signal } = controller;
    const begun = isCurrent ? state.found : undefined;
    setState((now) => (now.key === key ? { ...now, isRunning: true, error: undefined } : now));
    const read = async () => {
      for await (const found of searched(history, parameters, rows, signal, begun)) {
        if (signal.aborted) return;
        setState({ key, found, isRunning: true, error: undefined });
      }
      if (!signal.aborted) setState((now) => ({ ...now, isRunning: false }));
    };
    let timer: ReturnType<typeof setTimeout> | undefined;
    const fail = (error: unknown) => (now: State) => ({ key, found: now.key === key ? now.found : undefined, isRunning: false, error });
    read().catch((error) => {
      if (signal.aborted) return;
      setState(fail(error));
      if (isPassing(error)) timer = setTimeout(set(false), PAUSE);
    });
    return () => {
      controller.abort();
      clearTimeout(timer);
    };
  }, [key, turn]);
  return {
    /** While the first window of another search is on its way, that before it. */
    found: state.found,
    isCurrent,
    isRunning: !isStopped && (!isCurrent || state.isRunning),
    error: isCurrent ? state.error : undefined,
    stop: set(true),
    goOn: set(false),
  };
}
