// What the tests do with a grid, whatever its library.

import { trades, type TradeInput } from "@pagebucket/client";

import { type Shown, type Trades, underWrites } from "../walk.js";

export interface Grid {
  /** The page that is shown, from 0, and its rows, once they are there. */
  shown(): (Shown & { page: number }) | undefined;
  /** Called whenever rows may have come. */
  changed(): void;
  go(page: number): void;
  sort(field: string, order: "asc" | "desc"): void;
  filter(field: string, text: string): void;
  create(trade: TradeInput): Promise<unknown>;
  /** Reads again, and shows the newest items. */
  refresh(): void;
  /** Tries to change the first row. */
  edit?(): Promise<unknown>;
}

/** Makes a grid of these trades, newest first, in the page. */
export type Open = (mine: Trades, failed: (error: Error) => void) => Promise<Grid>;

declare global {
  var grid: Grid;
  /** What the grid has shown on its walk, page by page. */
  var walked: Shown[];
  /** What the adapter has refused, and what failed. */
  var errors: string[];
  var show: (baseUrl: string, customer: number) => Promise<void>;
  /** Fills the trades of a customer, walks through them, and tells what was wrong. */
  var walk: (baseUrl: string, customer: number) => Promise<string[]>;
}

export function expose(open: Open): void {
  globalThis.walked = [];
  globalThis.errors = [];
  const failed = ({ message }: Error) => void errors.push(message);
  globalThis.show = async (baseUrl, customer) => {
    globalThis.grid = await open(trades({ baseUrl }, customer), failed);
  };
  globalThis.walk = async (baseUrl, customer) => {
    const { mine, faults } = await underWrites(baseUrl, customer);
    const grid = await open(mine, failed);
    await new Promise<void>((done) => {
      grid.changed = () => {
        const shown = grid.shown();
        if (!shown || walked[shown.page]) return;
        const { page, seqs, total } = shown;
        walked[page] = { seqs, total };
        if ((page + 1) * seqs.length < total!) grid.go(page + 1);
        else done();
      };
      grid.changed();
    });
    return faults(walked);
  };
}
