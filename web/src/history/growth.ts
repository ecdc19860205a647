// What is appended to a history while it is shown.

import { useEffect, useRef, useState } from "preact/hooks";
import type { AnyHistory, Item } from "../api/read";
import { liveBatches, type LiveState } from "@pagebucket/client";
import { useAttention } from "../parts/attention";

/** More is not kept: a page that misses some is read again. */
const KEPT = 1000;

/** Milliseconds for which items are collected before they are drawn. */
const TOGETHER = 50;

export interface Growth {
  /** The last items that have come, in order. */
  arrived: Item[];
  /** The `seq` of the last item of the history. */
  position: number;
  state: LiveState | "off" | "connecting" | "ended";
  error: unknown;
}

/** The history from `start` on, while `on` and while the tab is seen. It goes on where it stopped, so nothing is missing. */
export function useGrowth(history: AnyHistory, start: number | undefined, on: boolean): Growth {
  const [growth, setGrowth] = useState<Growth>({ arrived: [], position: 0, state: "off", error: undefined });
  const { isSeen, isOnline } = useAttention();
  const position = useRef<number>(undefined);
  useEffect(() => {
    if (start === undefined || !on || !isSeen || !isOnline) return;
    position.current ??= start;
    const controller = new AbortController();
    const { signal } = controller;
    const onState = (state: LiveState) => !signal.aborted && setGrowth((before) => ({ ...before, state }));
    let collected: Item[] = [];
    let timer: ReturnType<typeof setTimeout> | undefined;
    const draw = () => {
      const items = collected;
      [collected, timer] = [[], undefined];
      setGrowth((before) => ({ ...before, arrived: [...before.arrived, ...items].slice(-KEPT), position: position.current! }));
    };
    const follow = async () => {
      for await (const { items, position: at } of liveBatches(history as never, { after: position.current! }, { signal, onState })) {
        if (signal.aborted) return;
        position.current = at;
        collected.push(...(items as Item[]));
        timer ??= setTimeout(draw, TOGETHER);
      }
    };
    setGrowth((before) => ({ ...before, position: position.current!, state: "connecting", error: undefined }));
    follow().catch((error) => !signal.aborted && setGrowth((before) => ({ ...before, state: "ended", error })));
    return () => {
      controller.abort();
      clearTimeout(timer);
      if (collected.length > 0) draw();
      setGrowth((before) => ({ ...before, state: "off" }));
    };
  }, [history.path, start, on, isSeen, isOnline]);
  return on && !isOnline ? { ...growth, state: "waiting" } : growth;
}
