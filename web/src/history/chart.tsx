// A chart of a history, or of a selection of it: of the summaries that the service makes of all items, or of items that are loaded.

import { go } from "../address";
import { isNumeric } from "../api/schema";
import { measuresOf } from "../chart/of-summaries";
import { Choice } from "../parts/choice";
import { plain } from "../parts/text";
import type { TabProps } from "../views/history";
import { ItemChart } from "./item-chart";
import { addressOfHistory } from "./parameters";
import { Selection } from "./selection";
import { SummaryChart } from "./summary-chart";

export function ChartTab(props: TabProps) {
  const { definition, owner, parameters } = props;
  const { from, to, filters } = parameters;
  const summarised = measuresOf(definition);
  const numbers = definition.columns.filter(({ schema }) => isNumeric(schema)).map(({ name }) => name);
  const number = numbers.find((name) => name === parameters.measure);
  const measure = number === undefined ? (summarised.find(({ id }) => id === parameters.measure) ?? summarised[0]) : undefined;
  const options: (readonly [string, string])[] = summarised.map(({ id, words }) => [id, words]);
  if (options.length === 0) options.push(["", `how many ${definition.items}`]);
  const choice = (
    <Choice
      label="Show"
      value={number ?? measure?.id ?? ""}
      options={[...options, ...numbers.map((name) => [name, `each ${plain(name)}`] as const)]}
      onValue={(measure) => go(addressOfHistory(definition, owner, { ...parameters, measure }), { replace: true })}
    />
  );
  return (
    <>
      <Selection key={JSON.stringify([from, to, filters])} {...props} />
      {measure ? (
        <SummaryChart {...props} measure={measure}>
          {choice}
        </SummaryChart>
      ) : (
        <ItemChart {...props} measure={number}>
          {choice}
        </ItemChart>
      )}
    </>
  );
}
