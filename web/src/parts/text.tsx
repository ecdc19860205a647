// Text of others: every character is seen, and none acts on what stands beside it.

/** Control characters, and those that turn the direction of text or take no room. What joins two emoji to one makes them seen. */
const UNSEEN =
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]|(?<!\p{Extended_Pictographic}[\ufe0f\u{1f3fb}-\u{1f3ff}]?)\u200d|\u200d(?!\p{Extended_Pictographic})/u;
const PARTS = new RegExp(`(\r\n|${UNSEEN.source})`, "u");

/** A text in its own direction. Characters that cannot be seen are shown by their number. Lines are kept where `lines` says so. */
export function Text({ of, lines = false }: { of: string; lines?: boolean }) {
  if (!UNSEEN.test(of)) return <bdi>{of}</bdi>;
  return (
    <bdi>
      {of.split(PARTS).map((part, index) => {
        if (index % 2 === 0) return part;
        if (lines && (part === "\n" || part === "\r\n")) return "\n";
        return [...part].map((character) => {
          const code = `U+${hexadecimal(character)}`;
          return (
            <span class="unseen" title={code}>
              {code}
            </span>
          );
        });
      })}
    </bdi>
  );
}

/** JSON for people: the same, with escapes for what cannot be seen. */
export function visibleJson(value: unknown): string {
  const text = JSON.stringify(value, null, 2);
  const unseen = new RegExp(`(?!\n)(?:${UNSEEN.source})`, "gu");
  return text.replace(unseen, (character) => `\\u${hexadecimal(character)}`);
}

function hexadecimal(character: string): string {
  return character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0");
}

/** A text without markup, for names of pages and labels. */
export function plain(text: string): string {
  return text.replace(new RegExp(UNSEEN.source, "gu"), "\u{fffd}");
}
