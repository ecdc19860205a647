// What each tab of a history is given.

import type { Definition } from "../api/catalog";
import type { Summary } from "../api/read";
import type { Growth } from "./growth";
import type { Parameters } from "./parameters";

export interface TabProps {
  definition: Definition;
  owner: string;
  parameters: Parameters;
  /** The history as it was when it was opened. */
  summary: Summary;
  growth: Growth;
  /** The number of its items by now. */
  total: number;
  /** The commands of what the view has asked for whatever its tab. */
  asked: string[];
}
