// Leads to an owner by its id.

import { addressOf, go } from "../address";
import type { Outline } from "../api/catalog";
import { singular } from "../format";

export function OwnerField({ histories }: { histories: Outline[] }) {
  const { owners, ownerField, ownerSchema, ownerExample, items } = histories[0]!;
  const hint = `${ownerField}, such as ${ownerExample}`;
  const submit = (event: Event) => {
    event.preventDefault();
    const id = String(new FormData(event.currentTarget as HTMLFormElement).get("id")).trim();
    if (id) go(addressOf(histories.length === 1 ? [owners, id, items] : [owners, id]));
  };
  return (
    <form class="row" onSubmit={submit}>
      <input
        name="id"
        aria-label={`Open a ${singular(owners)} by ${ownerField}`}
        placeholder={hint}
        size={Math.max(24, hint.length)}
        required
        spellcheck={false}
        autoComplete="off"
        inputMode={ownerSchema.type === "integer" ? "numeric" : "text"}
      />
      <button type="submit">Open</button>
    </form>
  );
}
