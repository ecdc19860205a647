// The trades of examples/trades.csv.

import text from "../../examples/trades.csv?raw";

const [head = "", ...rows] = text.trim().split("\n");
const names = head.split(",");

export const trades = rows.map((row) => {
  const values = row.split(",").map((value, index) => [names[index]!, names[index] === "qty" ? Number(value) : value] as const);
  return Object.fromEntries(values.filter(([, value]) => value !== ""));
});
