// What a screen reader says of changes that are only seen.

import { useEffect, useState } from "preact/hooks";

let say: (text: string) => void = () => undefined;

export function announce(text: string): void {
  say(text);
}

export function Announcer() {
  const [text, setText] = useState("");
  useEffect(() => {
    say = setText;
    return () => {
      say = () => undefined;
    };
  }, []);
  return (
    <div class="only-read" role="status" aria-live="polite">
      {text}
    </div>
  );
}
