// A span of time, and the filters of the definition.

import { useState } from "preact/hooks";
import { go } from "../address";
import type { Column, Definition } from "../api/catalog";
import { kindOf, type Schema } from "../api/schema";
import { Fold } from "../parts/fold";
import { SpanField } from "../parts/span-field";
import { plain } from "../parts/text";
import { useZone, ZoneChoice } from "../parts/zone";
import { addressOfHistory, isSelection, type Parameters } from "./parameters";

interface Props {
  definition: Definition;
  owner: string;
  parameters: Parameters;
}

export function Selection({ definition, owner, parameters }: Props) {
  const { from = "", to = "" } = parameters;
  const zone = useZone();
  const texts = definition.filters.map(({ name }) => [name, textOf(parameters.filters[name] ?? [])] as const);
  const asked = { of: JSON.stringify([from, to, texts]), span: { from, to }, values: Object.fromEntries(texts) as Record<string, string> };
  const [typed, setTyped] = useState(asked);
  // What was typed for another address is of no use. The fields stay, and so does the focus.
  const { span, values } = typed.of === asked.of ? typed : asked;
  const { page: _, after: __, before: ___, mark: ____, ...kept } = parameters;
  const show = (event: Event) => {
    event.preventDefault();
    const chosen = Object.entries(values).map(([name, text]) => [name, valuesOf(text)] as const);
    const filters = Object.fromEntries(chosen.filter(([, list]) => list.length > 0));
    go(addressOfHistory(definition, owner, { ...kept, from: span.from, to: span.to, filters }));
  };
  const { from: _____, to: ______, filters: _______, ...all } = kept;
  // A chart of summaries asks for its spans in a zone, which its address names.
  const inAddress = parameters.tab === "chart" && definition.summaries !== undefined;
  const choose = (zone: string) => go(addressOfHistory(definition, owner, { ...parameters, zone: inAddress ? zone : undefined }), { replace: true });
  const hasTexts = definition.filters.some(({ schema }) => !choicesOf(schema));
  return (
    <Fold name="Choose by time and values" open={isSelection(parameters)}>
      <form class="selection row" onSubmit={show} role="search" aria-label="Choose items">
        {(["from", "to"] as const).map((end) => (
          <SpanField key={end} name={end} zone={zone} value={span[end]} onValue={(value) => setTyped({ of: asked.of, values, span: { ...span, [end]: value } })} />
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
        <span class="row end">
          <ZoneChoice other={parameters.zone} onValue={choose} />
        </span>
        {hasTexts && <p class="hint">Several values stand between commas: A, B. One with a comma stands in quotes: "A, B".</p>}
      </form>
    </Fold>
  );
}

function choicesOf(schema: Schema): unknown[] | undefined {
  return kindOf(schema) === "boolean" ? [true, false] : schema.enum;
}

function FilterField({ column: { schema }, value, onValue }: { column: Column; value: string; onValue: (value: string) => void }) {
  const choices = choicesOf(schema);
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
  return (
    <input
      type="text"
      class="short"
      placeholder="any"
      spellcheck={false}
      value={value}
      onInput={(event) => onValue(event.currentTarget.value)}
    />
  );
}

/** Values as the field shows them. */
function textOf(values: string[]): string {
  return values.map((value) => (/[",]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value)).join(", ");
}

function valuesOf(text: string): string[] {
  const parts = text.match(/\s*"(?:[^"]|"")*"\s*|[^,]+/g) ?? [];
  const values = parts.map((part) => part.trim().replace(/^"([^]*)"$/, (_, quoted: string) => quoted.replaceAll('""', '"')));
  return [...new Set(values.filter(Boolean))];
}
