// Owners whose ids begin with a text. The service lists owners by their ids: a search is a few spans of that
// list. These are functions of their arguments: `test/owners.test.ts` needs no browser.

/** A span of ids: those after one, empty before all, as far as they have the beginning. */
export interface IdSpan {
  after: string;
  has: (id: string) => boolean;
}

/** What the schema of the ids says of them. */
interface Kind {
  type?: string | string[];
  format?: string;
}

/** The spans of the ids that begin with a text, in the order of lists. None if no id begins so. */
export function spansOf({ type, format }: Kind, beginning: string): IdSpan[] {
  if (type === "integer") return spansOfNumbers(beginning);
  const text = format === "uuid" ? beginning.toLowerCase() : beginning;
  const after = format === "uuid" ? beforeUuid(text) : beforeText(text);
  return after === undefined ? [] : [{ after, has: (id) => id.startsWith(text) }];
}

/** Digits of the greatest id that is a number. */
const MOST_DIGITS = String(Number.MAX_SAFE_INTEGER).length;

/** 12 begins 12 itself, 120 to 129, 1200 to 1299, and so on: one span for each number of digits that may follow. */
function spansOfNumbers(beginning: string): IdSpan[] {
  if (!/^[1-9]\d*$/.test(beginning)) return [];
  const withDigits = (more: number) => ["0", "9"].map((digit) => Number(beginning + digit.repeat(more))) as [number, number];
  const spans = Array.from({ length: MOST_DIGITS - beginning.length + 1 }, (_, more) => withDigits(more));
  return spans
    .filter(([first]) => first <= Number.MAX_SAFE_INTEGER)
    .map(([first, last]) => ({ after: first > 1 ? String(first - 1) : "", has: (id) => first <= Number(id) && Number(id) <= last }));
}

/** The characters of ids, in their order, and how many an id may have. */
const CHARACTERS = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const LONGEST = 64;

/** The last id before those that begin with this text. */
function beforeText(text: string): string | undefined {
  if (!/^[A-Za-z0-9-]{1,64}$/.test(text)) return undefined;
  const [stem, place] = [text.slice(0, -1), CHARACTERS.indexOf(text.at(-1)!)];
  return place === 0 ? stem : (stem + CHARACTERS[place - 1]).padEnd(LONGEST, CHARACTERS.at(-1));
}

const LEAST_UUID = "00000000-0000-0000-0000-000000000000";

function beforeUuid(text: string): string | undefined {
  const first = text + LEAST_UUID.slice(text.length);
  if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(first)) return undefined;
  const number = BigInt(`0x${first.replaceAll("-", "")}`);
  if (number === 0n) return "";
  const digits = (number - 1n).toString(16).padStart(32, "0");
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

/** Owners as a list of them has them. */
interface List<Owner> {
  items: Owner[];
  links: { next?: string };
}

/** Up to `limit` owners whose ids begin with a text, and whether there may be more. `list` reads owners after an id. */
export async function ownersBeginning<Owner extends Record<string, unknown>>(
  { ownerField, ownerSchema }: { ownerField: string; ownerSchema: Kind },
  beginning: string,
  limit: number,
  list: (after: string, limit: number) => Promise<List<Owner>>,
): Promise<{ items: Owner[]; more: boolean }> {
  const found: Owner[] = [];
  for (const { after, has } of spansOf(ownerSchema, beginning)) {
    for (let from: string | undefined = after; from !== undefined; ) {
      const { items, links } = await list(from, limit - found.length);
      const inside = items.filter((owner) => has(String(owner[ownerField])));
      found.push(...inside);
      from = links.next ? (new URLSearchParams(links.next.split("?")[1]).get("after") ?? undefined) : undefined;
      if (found.length >= limit) return { items: found, more: from !== undefined };
      // Nothing is after the end of the list.
      if (from === undefined && items.length === inside.length) return { items: found, more: false };
      if (inside.length < items.length || (from !== undefined && !has(from))) break;
    }
  }
  return { items: found, more: false };
}
