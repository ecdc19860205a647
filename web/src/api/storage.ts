// What the browser keeps for the page. Where it keeps nothing, because its user or its owner forbids it, the page remembers it
// itself until it is left.

class Kept {
  readonly #remembered = new Map<string, string>();
  readonly #find: () => Storage;

  /** `find` throws where storage is forbidden. */
  constructor(find: () => Storage) {
    this.#find = find;
  }

  get(name: string): string | undefined {
    const remembered = this.#remembered.get(name);
    if (remembered !== undefined) return remembered;
    try {
      return this.#find().getItem(name) ?? undefined;
    } catch {
      return undefined;
    }
  }

  /** Without a value the name is forgotten. */
  set(name: string, value: string | undefined): void {
    this.#remembered.delete(name);
    try {
      const storage = this.#find();
      storage.removeItem(name);
      if (value !== undefined) storage.setItem(name, value);
    } catch {
      // It may also be full.
      if (value !== undefined) this.#remembered.set(name, value);
    }
  }
}

/** Until the tab is closed. */
export const ofTab = new Kept(() => sessionStorage);

/** On this device. */
export const ofDevice = new Kept(() => localStorage);
