// The items of a history: a page at a time, or a selection by time and values.

import { useState } from "preact/hooks";
import { PageOfItems } from "./page-of-items";
import { isSelection } from "./parameters";
import { SelectedItems } from "./selected-items";
import { Selection } from "./selection";
import type { TabProps } from "./tab";
import { useTableChoice } from "./table-choice";

export function ItemsTab(props: TabProps) {
  const [find, onFind] = useState("");
  const choice = useTableChoice(props.definition);
  const reader = { find, onFind, choice };
  return (
    <>
      <Selection {...props} />
      {isSelection(props.parameters) ? <SelectedItems {...props} {...reader} /> : <PageOfItems {...props} {...reader} />}
    </>
  );
}
