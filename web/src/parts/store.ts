import { useEffect, useState } from "preact/hooks";

/** Draws again when something outside of the components has changed. */
export function useChanges(subscribe: (listener: () => void) => () => void): void {
  const [, draw] = useState(0);
  useEffect(() => subscribe(() => draw((count) => count + 1)), [subscribe]);
}
