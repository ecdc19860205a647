// The columns of a table as its reader has arranged them. These are functions of their arguments: `test/view-state.test.ts` needs no browser.

export interface ColumnChoice {
  name: string;
  hidden?: boolean;
  /** Whether it stays in view while the others are scrolled. */
  pinned?: boolean;
  /** In characters. Without it, as wide as its values. */
  width?: number;
}

/** All columns in the reader's order, pinned ones first. Those that the reader has not seen yet follow in their own order. */
export function arranged(names: readonly string[], chosen: readonly ColumnChoice[]): ColumnChoice[] {
  const known = chosen.filter(({ name }) => names.includes(name));
  const unknown = names.filter((name) => !chosen.some((one) => one.name === name)).map((name) => ({ name }));
  const all: ColumnChoice[] = [...known, ...unknown];
  return [...all.filter(({ pinned }) => pinned), ...all.filter(({ pinned }) => !pinned)];
}

/** One column later, or with `-1` earlier. */
export function moved(columns: readonly ColumnChoice[], name: string, by: 1 | -1): ColumnChoice[] {
  const at = columns.findIndex((one) => one.name === name);
  const to = at + by;
  if (at < 0 || to < 0 || to >= columns.length) return [...columns];
  const all = [...columns];
  [all[at], all[to]] = [all[to]!, all[at]!];
  return all;
}

/** In characters. */
export const WIDEST = 500;

/** Without a width the column is as wide as its values. */
export function withWidth(columns: readonly ColumnChoice[], name: string, width: number | undefined): ColumnChoice[] {
  return columns.map((one) => {
    if (one.name !== name) return one;
    const { width: _, ...rest } = one;
    return width === undefined ? rest : { ...rest, width };
  });
}

export function withChange(columns: readonly ColumnChoice[], name: string, change: Partial<ColumnChoice>): ColumnChoice[] {
  return columns.map((one) => (one.name === name ? { ...one, ...change } : one));
}

/** Members of items that no schema declares, the most frequent first. */
export function undeclaredIn(items: readonly object[], declared: readonly string[]): string[] {
  const counts = new Map<string, number>();
  for (const item of items)
    for (const name of Object.keys(item)) if (name !== "seq" && !declared.includes(name)) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].sort(([, one], [, other]) => other - one).map(([name]) => name);
}
