/** The table of a result: its columns come from the server. */

import { el, table } from "../ui/dom.js";
import { count, interval, share } from "../ui/format.js";

const NUMBERS = ["share", "interval", "count"];
const FORMATS = {
  text: (value) => value ?? "",
  code: (value, row) => el("code", {}, sequenceName(value, row)),
  share: (value) => share(value),
  interval: (_, row) => interval(row.low, row.high),
  count: (value) => count(value),
  yes_no: (value) => (value === true ? "yes" : value === false ? "no" : "–"),
};

/** A sequence that may go on after its last letter has dots. */
export const sequenceName = (sequence, { ends }) => `${sequence}${ends === false ? "…" : ""}`;

/** view: {caption, columns: [{head, field, format, optional}]}; the first column names a row. */
export function resultTable({ caption, columns }, rows) {
  const hasValue = ({ field }) => rows.some((row) => row[field] !== null && row[field] !== undefined);
  return table({
    caption, rows, tall: rows.length > 14,
    columns: columns.filter((column) => !column.optional || hasValue(column)).map((column, place) => ({
      head: column.head, rowHead: place === 0, number: NUMBERS.includes(column.format),
      cell: (row) => FORMATS[column.format](row[column.field], row),
    })),
  });
}
