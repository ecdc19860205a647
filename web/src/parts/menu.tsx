// A sheet that a button opens. Escape and a click elsewhere close it.

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

export function Menu({ name, children }: { name: string; children: ComponentChildren }) {
  const menu = useRef<HTMLDetailsElement>(null);
  // What was never opened is not made. What goes on in a menu goes on when it is closed.
  const [isMade, setIsMade] = useState(false);
  useEffect(() => {
    // What was clicked may be gone by now: the path says where it was.
    const leave = (event: Event) => {
      if (menu.current && !event.composedPath().includes(menu.current)) menu.current.open = false;
    };
    addEventListener("click", leave);
    return () => removeEventListener("click", leave);
  }, []);
  const press = (event: KeyboardEvent) => {
    if (event.key !== "Escape") return;
    menu.current!.open = false;
    menu.current!.querySelector("summary")!.focus();
  };
  return (
    <details ref={menu} class="menu" onKeyDown={press} onToggle={() => setIsMade(true)}>
      <summary>{name}</summary>
      <div class="sheet">{isMade && children}</div>
    </details>
  );
}
