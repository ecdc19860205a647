// Text of others: every character is seen, and none acts on what stands beside it.

/** Control characters, and those that turn the direction of text or take no room. */
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/;
const PARTS = new RegExp(`(${UNSEEN.source})`);

/** A text in its own direction. Characters that cannot be seen are shown by their number. Lines are kept where `lines` says so. */
export function Text({ of, lines = false }: { of: string; lines?: boolean }) {
  if (!UNSEEN.test(of)) return <bdi>{of}</bdi>;
  return (
    <bdi>
      {of.split(PARTS).map((part, index) => {
        if (index % 2 === 0 || (lines && part === "\n")) return part;
        const code = `U+${part.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}`;
        return (
          <span class="unseen" title={code}>
            {code}
          </span>
        );
      })}
    </bdi>
  );
}

/** A text without markup, for names of pages and labels. */
export function plain(text: string): string {
  return text.replace(new RegExp(UNSEEN.source, "g"), "\u{fffd}");
}
