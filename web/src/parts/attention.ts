import { useEffect, useState } from "preact/hooks";

/**
 * Whether this tab is seen, and whether the machine has a network. A tab that is not seen has no stream: over HTTP/1.1 a browser has
 * few connections to a service. And a stream may take long to notice that there is no network.
 */
export function useAttention(): { isSeen: boolean; isOnline: boolean } {
  const [attention, setAttention] = useState(now);
  useEffect(() => {
    const look = () => setAttention(now());
    document.addEventListener("visibilitychange", look);
    for (const change of ["online", "offline"]) addEventListener(change, look);
    return () => {
      document.removeEventListener("visibilitychange", look);
      for (const change of ["online", "offline"]) removeEventListener(change, look);
    };
  }, []);
  return attention;
}

function now() {
  return { isSeen: !document.hidden, isOnline: navigator.onLine };
}
