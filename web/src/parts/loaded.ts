// What a view has asked for.

import { HttpError } from "@pagebucket/client";
import { useEffect, useState } from "preact/hooks";

export interface Loaded<T> {
  /** The last answer; while another one is on its way, that before it. */
  data: T | undefined;
  error: unknown;
  loading: boolean;
  /** The key of `data`. */
  key: string | undefined;
  again: () => void;
}

/** Milliseconds until what failed for a time is read again: each time twice as long, up to the longest. */
const FIRST_PAUSE = 1000;
const LONGEST_PAUSE = 15_000;

/** Whether the service may answer later: it was not reached, or could not answer. */
export function isPassing(error: unknown): boolean {
  if (error instanceof HttpError) return [502, 503, 504].includes(error.status);
  return error instanceof TypeError;
}

/** Loads when the key changes, and again until the service can answer. Without a key nothing is loaded. */
export function useLoaded<T>(key: string | undefined, load: (signal: AbortSignal) => Promise<T>): Loaded<T> {
  const [state, setState] = useState<{ data?: T; error?: unknown; key?: string; settled?: string }>({});
  const [turn, setTurn] = useState(0);
  const wanted = key === undefined ? undefined : `${turn} ${key}`;
  useEffect(() => {
    if (key === undefined || wanted === undefined) return;
    const controller = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const attempt = async (pause: number) => {
      try {
        const data = await load(controller.signal);
        if (!controller.signal.aborted) setState({ data, key, settled: wanted });
      } catch (error) {
        if (controller.signal.aborted) return;
        setState((before) => ({ ...before, error, settled: wanted }));
        const asked = error instanceof HttpError ? (error.retryAfter ?? 0) * 1000 : 0;
        if (isPassing(error)) timer = setTimeout(attempt, Math.max(pause, asked), Math.min(pause * 2, LONGEST_PAUSE));
      }
    };
    void attempt(FIRST_PAUSE);
    return () => {
      controller.abort();
      clearTimeout(timer);
    };
  }, [wanted]);
  const settled = state.settled === wanted;
  return {
    data: state.data,
    error: settled ? state.error : undefined,
    loading: wanted !== undefined && !settled,
    key: state.key,
    again: () => setTurn((turn) => turn + 1),
  };
}
