// From page to page: by buttons, by keys, by number, and by a slider.

import { useLayoutEffect, useState } from "preact/hooks";
import { go } from "../address";
import { number } from "../format";
import type { Order, Steps } from "./view-state";

const NAMES = ["first", "previous", "next", "last"] as const;
const SIGNS = { first: "⇤", previous: "←", next: "→", last: "⇥" };
const KEYS: Record<string, (typeof NAMES)[number]> = { Home: "first", ArrowLeft: "previous", ArrowRight: "next", End: "last" };
const SHOWN_KEYS = { first: "Home", previous: "Left", next: "Right", last: "End" };

/** Keys step while no field and no other part with keys of its own has the focus. */
export function useKeys(steps: Steps<string>): void {
  // Keys lead where the buttons do from the moment that these are shown. A plain effect would come a frame later.
  useLayoutEffect(() => {
    const press = (event: KeyboardEvent) => {
      const step = KEYS[event.key];
      if (!step || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey || event.defaultPrevented) return;
      if ((event.target as Element).closest("input, select, textarea, [contenteditable], [data-keys], pre")) return;
      // A part that is wider than the page scrolls by these keys.
      const part = (event.target as Element).closest(".scroll");
      if (part && part.scrollWidth > part.clientWidth) return;
      event.preventDefault();
      const address = steps[step];
      if (address !== undefined) go(address);
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  });
}

export function StepButtons({ steps, words }: { steps: Steps<string>; words: Record<keyof Steps<string>, string> }) {
  return (
    <span class="group">
      {NAMES.map((name) => {
        const address = steps[name];
        return (
          <button
            key={name}
            type="button"
            disabled={address === undefined}
            aria-label={`${name[0]!.toUpperCase()}${name.slice(1)}: ${words[name]}`}
            aria-keyshortcuts={SHOWN_KEYS[name]}
            title={`${words[name]} (${SHOWN_KEYS[name]})`}
            onClick={() => address !== undefined && go(address)}
          >
            <span aria-hidden="true">{SIGNS[name]}</span>{" "}
            {(name === "previous" || name === "next") && <span class="wide">{words[name]}</span>}
          </button>
        );
      })}
    </span>
  );
}

export interface PageChoiceProps {
  /** Without a number: items that are no page, such as the newest. */
  page: number | undefined;
  /** The page that these items are on, or near. */
  near: number;
  /** What stands in the field that has no number. */
  hint: string;
  order: Order;
  first: number;
  last: number;
  /** The address of a page. */
  addressOf: (page: number) => string;
}

/** Any page, by its number or by a slider. */
export function PageChoice({ page, near, hint, order, first, last, addressOf }: PageChoiceProps) {
  const [slid, setSlid] = useState<number>();
  const [typed, setTyped] = useState<string>();
  const shown = slid ?? near;
  // The slider goes the way of the steps: down the list.
  const turned = (page: number) => (order === "asc" ? page : first + last - page);
  const choose = (chosen: number) => {
    setSlid(undefined);
    setTyped(undefined);
    if (chosen === 0) return;
    if (Number.isInteger(chosen) && chosen !== page) go(addressOf(Math.min(Math.max(chosen, first), last)));
  };
  return (
    <form
      class="pages"
      onSubmit={(event) => {
        event.preventDefault();
        choose(Number(typed ?? page ?? 0));
      }}
    >
      <label>
        <span>Page</span>
        <input
          type="number"
          class="short"
          min={first}
          max={last}
          placeholder={hint}
          value={typed ?? slid ?? page ?? ""}
          onInput={(event) => setTyped(event.currentTarget.value)}
          onChange={() => typed !== undefined && choose(Number(typed))}
        />
      </label>
      <span>of {number(last)}</span>
      {last > first && (
        <input
          type="range"
          aria-label="Page, by a slider"
          aria-valuetext={`page ${shown} of ${last}`}
          min={first}
          max={last}
          value={turned(shown)}
          onInput={(event) => setSlid(turned(Number(event.currentTarget.value)))}
          onChange={(event) => choose(turned(Number(event.currentTarget.value)))}
        />
      )}
    </form>
  );
}
