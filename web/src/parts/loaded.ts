// What a view has asked for.

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

/** Loads when the key changes. Without a key nothing is loaded. */
export function useLoaded<T>(key: string | undefined, load: (signal: AbortSignal) => Promise<T>): Loaded<T> {
  const [state, setState] = useState<{ data?: T; error?: unknown; key?: string; settled?: string }>({});
  const [turn, setTurn] = useState(0);
  const wanted = key === undefined ? undefined : `${turn} ${key}`;
  useEffect(() => {
    if (key === undefined || wanted === undefined) return;
    const controller = new AbortController();
    load(controller.signal).then(
      (data) => !controller.signal.aborted && setState({ data, key, settled: wanted }),
      (error) => !controller.signal.aborted && setState((before) => ({ ...before, error, settled: wanted })),
    );
    return () => controller.abort();
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
