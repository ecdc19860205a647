// The edge of a column's head: dragged, or moved by keys, it gives the column a width.

import { useRef } from "preact/hooks";
import { plain } from "../parts/text";
import { WIDEST } from "./columns";

interface Props {
  name: string;
  /** In characters. Without it, the column is as wide as its values. */
  width: number | undefined;
  onWidth: (width: number | undefined) => void;
}

/** Characters that a key moves it by, with Shift. */
const FAR = 10;

export function ColumnEdge({ name, width, onWidth }: Props) {
  const drag = useRef<{ x: number; width: number; character: number; cells: HTMLElement[] }>(undefined);
  const widthAt = (x: number) => {
    const { x: begun, width, character } = drag.current!;
    return within(width + (x - begun) / character);
  };
  const take = (event: PointerEvent & { currentTarget: HTMLElement }) => {
    const cells = cellsOf(event.currentTarget);
    if (!cells[0] || event.button !== 0) return;
    event.preventDefault();
    event.currentTarget.setPointerCapture(event.pointerId);
    drag.current = { x: event.clientX, cells, ...measured(cells[0]) };
  };
  const move = (event: PointerEvent) => {
    if (!drag.current) return;
    // The table is drawn again when the edge is let go.
    for (const cell of drag.current.cells) Object.assign(cell.style, { width: `${widthAt(event.clientX)}ch`, maxWidth: "none" });
  };
  const letGo = (event: PointerEvent) => {
    if (!drag.current) return;
    const chosen = widthAt(event.clientX);
    const isMoved = event.clientX !== drag.current.x;
    drag.current = undefined;
    if (isMoved) onWidth(chosen);
  };
  const press = (event: KeyboardEvent & { currentTarget: HTMLElement }) => {
    const by = event.shiftKey ? FAR : 1;
    if (event.key === "Home" || event.key === "Delete") onWidth(undefined);
    else if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
      const [cell] = cellsOf(event.currentTarget);
      const from = width ?? (cell ? Math.round(measured(cell).width) : 1);
      onWidth(within(from + (event.key === "ArrowRight" ? by : -by)));
    } else return;
    event.preventDefault();
  };
  return (
    <span
      class="edge"
      role="separator"
      aria-orientation="vertical"
      aria-label={`Width of ${plain(name)}`}
      aria-valuemin={0}
      aria-valuemax={WIDEST}
      aria-valuenow={width ?? 0}
      aria-valuetext={width === undefined ? "as wide as its values" : `${width} characters`}
      title="Drag it, or press Left or Right. Double click or Home: as wide as its values"
      tabIndex={0}
      onPointerDown={take}
      onPointerMove={move}
      onPointerUp={letGo}
      onPointerCancel={letGo}
      onDblClick={() => onWidth(undefined)}
      onKeyDown={press}
    />
  );
}

function within(width: number): number {
  return Math.min(Math.max(Math.round(width), 1), WIDEST);
}

/** What the cells of the same column contain. */
function cellsOf(edge: HTMLElement): HTMLElement[] {
  const head = edge.closest("th")!;
  const rows = head.closest("table")!.querySelectorAll<HTMLTableRowElement>("tbody > tr[data-seq]");
  return [...rows].map((row) => row.cells[head.cellIndex]!.firstElementChild as HTMLElement);
}

/** The width of a cell in characters, and that of a character in pixels. */
function measured(cell: HTMLElement): { width: number; character: number } {
  const ruler = document.createElement("span");
  ruler.style.cssText = "position: absolute; width: 100ch";
  cell.append(ruler);
  const character = ruler.getBoundingClientRect().width / 100;
  ruler.remove();
  return { width: cell.getBoundingClientRect().width / character, character };
}
