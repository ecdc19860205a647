// A sheet that a button opens. Escape and a click elsewhere close it.

import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

export function Menu({ name, children }: { name: string; children: ComponentChildren }) {
  const menu = useRef<HTMLDetailsElement>(null);
  useEffect(() => {
    const leave = ({ target }: Event) => {
      if (menu.current && !menu.current.contains(target as Node)) menu.current.open = false;
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
    <details ref={menu} class="menu" onKeyDown={press}>
      <summary>{name}</summary>
      <div class="sheet">{children}</div>
    </details>
  );
}
