// The field of a value, by its schema: with what is wrong with it beside it.

import { kindOf, type Schema } from "../api/schema";
import { singular } from "../format";
import { MomentField } from "../parts/moment-field";
import { plain, Text } from "../parts/text";
import { ZoneName } from "../parts/zone";
import { emptyOf, type Typed } from "./draft";

export interface Fault {
  pointer?: string | undefined;
  detail: string;
}

interface Props {
  schema: Schema;
  name: string;
  typed: Typed | undefined;
  path: (string | number)[];
  required: boolean;
  onTyped: (path: (string | number)[], typed: Typed) => void;
  faults: readonly Fault[];
}

export function Field(props: Props) {
  const { schema, name, path, faults } = props;
  const pointer = path.map((part) => `/${String(part).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
  const wrong = faults.filter((fault) => fault.pointer === pointer).map(({ detail }) => detail);
  const id = `field${pointer.replace(/[^\w/-]/g, "_")}`;
  const kind = kindOf(schema);
  if (kind === "object") {
    const fields = Object.entries(schema.properties!).map(([property, of]) => (
      <Field
        {...props}
        key={property}
        schema={of}
        name={property}
        path={[...path, property]}
        typed={(props.typed as Record<string, Typed> | undefined)?.[property]}
        required={schema.required?.includes(property) ?? false}
      />
    ));
    if (path.length === 0) return <div class="fields">{fields}</div>;
    return (
      <fieldset>
        <legend>{plain(name)}</legend>
        <Wrong id={id} of={wrong} />
        {fields}
      </fieldset>
    );
  }
  if (kind === "array") return <List {...props} id={id} wrong={wrong} />;
  return (
    <div class={`field${wrong.length ? " wrong" : ""}`}>
      <label for={id}>
        {plain(name)}
        {kind === "date" && (
          <span class="quiet">
            {" "}
            (<ZoneName />)
          </span>
        )}
        {props.required && <span class="quiet"> required</span>}
      </label>
      <Input {...props} id={id} invalid={wrong.length > 0} />
      <Wrong id={id} of={wrong} />
      {schema.description && (
        <p class="hint" id={`${id}:hint`}>
          <Text of={schema.description} />
        </p>
      )}
    </div>
  );
}

function Wrong({ id, of }: { id: string; of: string[] }) {
  return of.length ? (
    <p class="fault" id={`${id}:fault`}>
      <Text of={of.join("; ")} />
    </p>
  ) : null;
}

function Input({ schema, typed, path, onTyped, id, invalid }: Props & { id: string; invalid: boolean }) {
  const kind = kindOf(schema);
  const text = typeof typed === "string" ? typed : "";
  const described = [invalid && `${id}:fault`, schema.description && `${id}:hint`].filter(Boolean).join(" ");
  const common = { id, "aria-invalid": invalid, "aria-describedby": described || undefined };
  const type = (event: { currentTarget: { value: string } }) => onTyped(path, event.currentTarget.value);
  const choices = kind === "boolean" ? [true, false] : kind === "choice" ? schema.enum! : undefined;
  if (choices) {
    return (
      <select {...common} value={text} onChange={type}>
        <option value="" />
        {choices.map((choice) => (
          <option key={String(choice)} value={String(choice)}>
            {plain(String(choice))}
          </option>
        ))}
      </select>
    );
  }
  if (kind === "any" || (kind === "text" && (schema.maxLength ?? 0) > 200 && !schema.pattern && !schema.format)) {
    return <textarea {...common} rows={3} value={text} onInput={type} placeholder={kind === "any" ? "JSON" : undefined} />;
  }
  if (kind === "date") return <MomentField {...common} value={text} onValue={(value) => onTyped(path, value)} />;
  const numeric = kind === "integer" ? "numeric" : kind === "number" || kind === "decimal" ? "decimal" : undefined;
  const example = schema.examples?.[0];
  return (
    <input
      {...common}
      type="text"
      inputMode={numeric}
      autoComplete="off"
      spellcheck={false}
      value={text}
      onInput={type}
      placeholder={example === undefined ? undefined : plain(String(example))}
    />
  );
}

function List({ id, wrong, ...props }: Props & { id: string; wrong: string[] }) {
  const { schema, name, typed, path, onTyped } = props;
  const list = Array.isArray(typed) ? typed : [];
  return (
    <fieldset>
      <legend>{plain(name)}</legend>
      {schema.description && (
        <p class="hint">
          <Text of={schema.description} />
        </p>
      )}
      <Wrong id={id} of={wrong} />
      {list.map((one, index) => (
        <div key={index} class="one">
          <Field {...props} schema={schema.items!} name={`${singular(name)} ${index + 1}`} path={[...path, index]} typed={one} required />
          <button
            type="button"
            class="small"
            aria-label={`Remove ${singular(plain(name))} ${index + 1}`}
            onClick={() => onTyped(path, list.toSpliced(index, 1))}
          >
            Remove
          </button>
        </div>
      ))}
      <button type="button" class="small" onClick={() => onTyped(path, [...list, emptyOf(schema.items!)])}>
        Add to {plain(name)}
      </button>
    </fieldset>
  );
}
