// All that is stored of an item: as fields, and as JSON.

import { addressOf } from "../address";
import type { Definition } from "../api/catalog";
import { BASE } from "../api/service";
import { historyOf, type Item } from "../api/read";
import { kindOf, type Schema } from "../api/schema";
import { number } from "../format";
import { CopyButton } from "../parts/curl";
import { plain, Text, visibleJson } from "../parts/text";
import { Value } from "../parts/value";
import { ZoneName } from "../parts/zone";
import { addressOfHistory } from "./parameters";
import { undeclaredIn } from "./columns";

interface Props {
  definition: Definition;
  owner: string;
  item: Item;
}

export function ItemDetails({ definition, owner, item }: Props) {
  const { columns, filters } = definition;
  const declared = columns.map(({ name }) => name);
  const others = undeclaredIn([item], declared);
  const chosenBy = (name: string) => filters.some((filter) => filter.name === name);
  return (
    <>
      <dl class="card item">
        {columns.map(({ name, schema }) => (
          <Field key={name} name={name} value={item[name]} schema={schema} hint={schema.description}>
            {chosenBy(name) && isChoosable(item[name]) && (
              <a class="button small" href={addressOfHistory(definition, owner, { filters: { [name]: [String(item[name])] } })}>
                Only these
              </a>
            )}
          </Field>
        ))}
        {others.map((name) => (
          <Field key={name} name={name} value={item[name]} schema={{}} hint="The definition does not declare it" />
        ))}
      </dl>
      <Json definition={definition} owner={owner} item={item} />
    </>
  );
}

interface FieldProps {
  name: string;
  value: unknown;
  schema: Schema;
  hint: string | undefined;
  children?: preact.ComponentChildren;
}

function Field({ name, value, schema, hint, children }: FieldProps) {
  return (
    <div>
      <dt>
        <Text of={name} />
        {kindOf(schema) === "date" && (
          <span class="quiet">
            {" "}
            <ZoneName />
          </span>
        )}
        {hint && (
          <span class="hint">
            <Text of={hint} />
          </span>
        )}
      </dt>
      <dd>
        <div class="whole">
          <Value of={value} schema={schema} />
        </div>
        {value !== undefined && (
          <span class="row">
            {children}
            <CopyButton text={typeof value === "string" ? value : JSON.stringify(value)} name={`Copy ${plain(name)}`} />
          </span>
        )}
      </dd>
    </div>
  );
}

function Json({ definition, owner, item }: Props) {
  const { owners, items } = definition;
  const permanent = new URL(addressOf([owners, owner, items, item.seq]), location.href).href;
  const path = `${BASE}${historyOf(definition, owner).path}/${item.seq}`;
  const text = visibleJson(item);
  return (
    <section class="card json" aria-label={`JSON of number ${number(item.seq)}`}>
      <div class="row">
        <CopyButton text={text} label="Copy JSON" />
        <CopyButton text={permanent} label="Copy the permanent link" />
        <CopyButton text={path} label="Copy the address in the API" />
      </div>
      <pre tabIndex={0} aria-label="The item as JSON">
        <code>{text}</code>
      </pre>
      <p class="quiet">
        <code>{plain(path)}</code>
      </p>
    </section>
  );
}

/** Whether a filter can choose items by this value. */
export function isChoosable(value: unknown): value is string | boolean {
  return (typeof value === "string" && value !== "") || typeof value === "boolean";
}
