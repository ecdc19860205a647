// The address bar: each view is one address, which leads back to it.

import { useEffect, useState } from "preact/hooks";
import { ROOT } from "./api/service";

export type Place =
  | { view: "start" }
  | { view: "page-views" }
  | { view: "owners"; owners: string }
  | { view: "owner"; owners: string; owner: string }
  | { view: "history"; owners: string; owner: string; items: string }
  | { view: "item"; owners: string; owner: string; items: string; seq: string };

export interface Address {
  place: Place;
  query: URLSearchParams;
}

export function readAddress(): Address {
  const path = location.pathname.slice(ROOT.pathname.length).replace(/\/$/, "");
  const [explorer, owners, owner, items, seq] = path.split("/").map(decode);
  const query = new URLSearchParams(location.search);
  if (explorer !== "explorer" || owners === undefined) return { place: { view: "start" }, query };
  if (owner === undefined) return { place: owners === "page-views" ? { view: "page-views" } : { view: "owners", owners }, query };
  if (items === undefined) return { place: { view: "owner", owners, owner }, query };
  if (seq === undefined) return { place: { view: "history", owners, owner, items }, query };
  return { place: { view: "item", owners, owner, items, seq }, query };
}

/** The address of a view: `addressOf(["customers", 7, "trades"], { page: 2 })`. Parameters without a value are left out. */
export function addressOf(parts: (string | number)[] = [], parameters: Record<string, Parameter> = {}): string {
  const path = parts.length ? ["explorer", ...parts].map((part) => encodeURIComponent(part)).join("/") : "";
  const pairs = Object.entries(parameters).flatMap(([name, value]) => [value].flat().map((one) => [name, one]));
  const given = pairs.filter(([, value]) => value !== undefined && value !== "").map(([name, value]) => [String(name), String(value)]);
  return ROOT.pathname + path + (given.length ? `?${new URLSearchParams(given)}` : "");
}

export type Parameter = string | number | undefined | string[];

const CHANGED = "pagebucket:address";

export function go(address: string, { replace = false } = {}): void {
  if (address === location.pathname + location.search) return;
  if (replace) history.replaceState(null, "", address);
  else history.pushState(null, "", address);
  dispatchEvent(new Event(CHANGED));
}

export function useAddress(): Address {
  const [address, setAddress] = useState(readAddress);
  useEffect(() => {
    const read = () => setAddress(readAddress());
    addEventListener("popstate", read);
    addEventListener(CHANGED, read);
    return () => {
      removeEventListener("popstate", read);
      removeEventListener(CHANGED, read);
    };
  }, []);
  return address;
}

/** Follows links to views of the explorer without loading the page again. */
export function followLinks(): void {
  addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = (event.target as Element | null)?.closest?.("a");
    if (!link || link.origin !== location.origin || link.hasAttribute("download") || link.target) return;
    const { pathname } = link;
    if (pathname !== ROOT.pathname && !pathname.startsWith(`${ROOT.pathname}explorer`)) return;
    if (link.hash) return;
    event.preventDefault();
    go(pathname + link.search);
  });
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
