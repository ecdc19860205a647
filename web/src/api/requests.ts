// What the page has asked for: the panel of requests shows it.

export interface Sent {
  id: number;
  method: string;
  path: string;
  /** When it was sent, on the clock of `performance`. */
  at: number;
  status?: number;
  /** Milliseconds until the head of the answer. */
  time?: number;
  /** `Server-Timing`, as it is. */
  timing?: string;
  /** Who has answered, known when the answer is complete. */
  by?: "network" | "browser's cache" | "network, unchanged";
  bytes?: number;
  failed?: string;
}

/** More is not kept. */
const KEPT = 100;

let sent: Sent[] = [];
let count = 0;
const listeners = new Set<() => void>();

export function requests(): readonly Sent[] {
  return sent;
}

export function onRequests(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function clearRequests(): void {
  replace([]);
}

/** `fetch`, noting what it does. */
export const recordedFetch: typeof fetch = async (input, init) => {
  const { pathname, search } = new URL(String(input), location.href);
  const id = ++count;
  const at = performance.now();
  replace([{ id, method: init?.method ?? "GET", path: pathname + search, at }, ...sent].slice(0, KEPT));
  try {
    const response = await fetch(input, init);
    const timing = response.headers.get("server-timing");
    note(id, { status: response.status, time: performance.now() - at, ...(timing ? { timing } : {}) });
    return response;
  } catch (error) {
    note(id, { time: performance.now() - at, failed: init?.signal?.aborted ? "ended" : "not reached" });
    throw error;
  }
};

function note(id: number, news: Partial<Sent>): void {
  replace(sent.map((one) => (one.id === id ? { ...one, ...news } : one)));
}

function replace(by: Sent[]): void {
  sent = by;
  for (const listener of listeners) listener();
}

/** Tells the browser's cache from the network: the former transfers nothing. */
function complete({ name, startTime, transferSize, encodedBodySize }: PerformanceResourceTiming): void {
  const { pathname, search } = new URL(name);
  const one = sent.findLast(({ path, at, by }) => path === pathname + search && by === undefined && at <= startTime + 5);
  if (!one) return;
  const unchanged = encodedBodySize > 0 && transferSize > 0 && transferSize < encodedBodySize;
  const by = transferSize === 0 ? "browser's cache" : unchanged ? "network, unchanged" : "network";
  note(one.id, { by, bytes: transferSize });
}

new PerformanceObserver((entries) => {
  for (const entry of entries.getEntries() as PerformanceResourceTiming[]) if (entry.initiatorType === "fetch") complete(entry);
}).observe({ type: "resource" });
