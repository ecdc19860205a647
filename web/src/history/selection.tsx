// A span of time, and the filters of the definition.

import { useState } from "preact/hooks";
import { go } from "../address";
import type { Column, Definition } from "../api/catalog";
import { kindOf } from "../api/schema";
import { DayField } from "../parts/day-field";
import { plain } from "../parts/text";
import { addressOfHistory, isSelection, type Parameters } from "./parameters";

interface Props {
  definition: Definition;
  owner: string;
  parameters: Parameters;
}

export function Selection({ definition, owner, parameters }: Props) {
  const { from = "", to = "" } = parameters;
  const texts = definition.filters.map(({ name }) => [name, (parameters.filters[name] ?? []).join(", ")] as const);
  const asked = { of: JSON.stringify([from, to, texts]), span: { from, to }, values: Object.fromEntries(texts) as Record<string, string> };
  const [typed, setTyped] = useState(asked);
  // What was typed for another address is of no use. The fields stay, and so does the focus.
  const { span, values } = typed.of === asked.of ? typed : asked;
  const { page: _, after: __, before: ___, ...kept } = parameters;
  const show = (event: Event) => {
    event.preventDefault();
    const chosen = Object.entries(values).map(([name, text]) => [name, valuesOf(text)] as const);
    const filters = Object.fromEntries(chosen.filter(([, list]) => list.length > 0));
    go(addressOfHistory(definition, owner, { ...kept, from: span.from, to: span.to, filters }));
  };
  const { from: ____, to: _____, filters: ______, ...all } = kept;
  return (
    <form class="selection row" onSubmit={show} role="search" aria-label="Choose items">
      {(["from", "to"] as const).map((end) => (
        <DayField key={end} name={end} value={span[end]} onValue={(value) => setTyped({ of: asked.of, values, span: { ...span, [end]: value } })} />
      ))}
      {definition.filters.map((column) => (
        <label key={column.name}>
          <span>{plain(column.name)}</span>
          <FilterField
            column={column}
            value={values[column.name] ?? ""}
            onValue={(value) => setTyped({ of: asked.of, span, values: { ...values, [column.name]: value } })}
          />
        </label>
      ))}
      <button type="submit">Show</button>
      {isSelection(parameters) && (
        <a class="button" href={addressOfHistory(definition, owner, all)}>
          Show all
        </a>
      )}
    </form>
  );
}

function FilterField({ column: { schema }, value, onValue }: { column: Column; value: string; onValue: (value: string) => void }) {
  const choices = kindOf(schema) === "boolean" ? [true, false] : schema.enum;
  if (choices) {
    return (
      <select value={value} onChange={(event) => onValue(event.currentTarget.value)}>
        <option value="">any</option>
        {choices.map((choice) => (
          <option key={String(choice)} value={String(choice)}>
            {plain(String(choice))}
          </option>
        ))}
      </select>
    );
  }
  const title = "One value, or several with commas between them";
  return (
    <input
      type="text"
      class="short"
      placeholder="any"
      title={title}
      spellcheck={false}
      value={value}
      onInput={(event) => onValue(event.currentTarget.value)}
    />
  );
}

function valuesOf(text: string): string[] {
  return [
    ...new Set(
      text
        .split(",")
        .map((value) => value.trim())
        .filter(Boolean),
    ),
  ];
}
