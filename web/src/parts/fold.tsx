// What narrow screens fold away behind its name. On wide screens it is always there.

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";

const narrow = matchMedia("(max-width: 640px)");

/** `open` says whether a narrow screen begins with it. */
export function Fold({ name, open, children }: { name: string; open: boolean; children: ComponentChildren }) {
  const [isOpen, setIsOpen] = useState(open || !narrow.matches);
  useEffect(() => {
    const change = () => setIsOpen(open || !narrow.matches);
    narrow.addEventListener("change", change);
    return () => narrow.removeEventListener("change", change);
  }, [open]);
  return (
    <details class="fold" open={isOpen} onToggle={(event) => setIsOpen(event.currentTarget.open)}>
      <summary>{name}</summary>
      {children}
    </details>
  );
}
