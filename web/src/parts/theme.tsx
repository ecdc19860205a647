// Light, dark, or as the system is.

import { useEffect, useState } from "preact/hooks";
import { ofDevice } from "../api/storage";

const STORED = "pagebucket.theme";
const THEMES = ["system", "light", "dark"] as const;
type Theme = (typeof THEMES)[number];

function stored(): Theme {
  const theme = ofDevice.get(STORED);
  return theme === "light" || theme === "dark" ? theme : "system";
}

function apply(theme: Theme): void {
  document.documentElement.style.colorScheme = theme === "system" ? "" : theme;
}

// Before anything is drawn.
apply(stored());

export function ThemeButton() {
  const [theme, setTheme] = useState(stored);
  useEffect(() => {
    apply(theme);
    // Kept because its user has asked for it.
    ofDevice.set(STORED, theme === "system" ? undefined : theme);
    dispatchEvent(new Event("pagebucket:theme"));
  }, [theme]);
  const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length]!;
  return (
    <button
      type="button"
      class="small"
      aria-label={`Colours: ${theme}. Change to ${next}`}
      title={`Colours: ${theme}`}
      onClick={() => setTheme(next)}
    >
      <span aria-hidden="true">{{ system: "◐", light: "☀", dark: "☾" }[theme]}</span>
    </button>
  );
}
