// A chart of a history, or of a selection of it: of the summaries that the service makes of all items, or of items that are loaded.

import { useLayoutEffect, useRef } from "preact/hooks";
import { go } from "../address";
import { isNumeric } from "../api/schema";
import { measuresOf } from "../chart/of-summaries";
import { Choice } from "../parts/choice";
import { plain } from "../parts/text";
import type { TabProps } from "./tab";
import { ItemChart } from "./item-chart";
import { addressOfHistory } from "./parameters";
import { Selection } from "./selection";
import { SummaryChart } from "./summary-chart";

export function ChartTab(props: TabProps) {
  const { definition, owner, parameters } = props;
  const summarised = measuresOf(definition);
  const numbers = definition.columns.filter(({ schema }) => isNumeric(schema)).map(({ name }) => name);
  const number = numbers.find((name) => name === parameters.measure);
  const measure = number === undefined ? (summarised.find(({ id }) => id === parameters.measure) ?? summarised[0]) : undefined;
  const options: (readonly [string, string])[] = summarised.map(({ id, words }) => [id, words]);
  if (options.length === 0) options.push(["", `how many ${definition.items}`]);
  // Each kind of chart has a choice of its own: who changes the kind by keyboard goes on there.
  const isChosen = useRef(false);
  useLayoutEffect(() => {
    if (isChosen.current) document.querySelector<HTMLElement>("main .toolbar select")?.focus();
    isChosen.current = false;
  }, [measure === undefined]);
  const choose = (measure: string) => {
    isChosen.current = true;
    go(addressOfHistory(definition, owner, { ...parameters, measure }), { replace: true });
  };
  const choice = (
    <Choice
      label="Show"
      value={number ?? measure?.id ?? ""}
      options={[...options, ...numbers.map((name) => [name, `each ${plain(name)}`] as const)]}
      onValue={choose}
    />
  );
  return (
    <>
      <Selection {...props} />
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
