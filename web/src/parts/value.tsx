// A value of an item, whatever it is.

import type { Schema } from "../api/schema";
import { Text } from "./text";
import { Time } from "./zone";

/** An instant as the service writes it. */
const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

export function Value({ of: value, schema = {} }: { of: unknown; schema?: Schema }) {
  if (value === undefined)
    return (
      <span class="none" aria-label="none">
        –
      </span>
    );
  if (typeof value === "string") {
    const isInstant = schema.format === "date-time" && INSTANT.test(value);
    return isInstant ? <Time of={value} /> : <Text of={value} lines />;
  }
  if (Array.isArray(value)) {
    if (value.length === 0) return <span class="none">empty</span>;
    return (
      <ol class="nested">
        {value.map((one, index) => (
          <li key={index}>
            <Value of={one} schema={schema.items ?? {}} />
          </li>
        ))}
      </ol>
    );
  }
  if (typeof value === "object" && value !== null) {
    return (
      <dl class="nested">
        {Object.entries(value).map(([name, one]) => (
          <div key={name}>
            <dt>
              <Text of={name} />
            </dt>
            <dd>
              <Value of={one} schema={schema.properties?.[name] ?? {}} />
            </dd>
          </div>
        ))}
      </dl>
    );
  }
  return <>{String(value)}</>;
}
