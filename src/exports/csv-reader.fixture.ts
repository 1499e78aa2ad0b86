const BARE_CELL = /[^",\r\n]*/y;
const QUOTED_CELL = /"((?:[^"]|"")*)"/y;

/** A strict RFC 4180 reader: CRLF after every row, the same number of cells in each row, quotes only around whole cells. */
export function readCsv(text: string): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  for (let at = 0; at < text.length;) {
    const pattern = text[at] === '"' ? QUOTED_CELL : BARE_CELL;
    pattern.lastIndex = at;
    const match = pattern.exec(text);
    if (!match) throw new Error(`the quoted cell at ${at} is not closed`);
    row.push(match[1]?.replaceAll('""', '"') ?? match[0]);
    at += match[0].length;
    if (text[at] === ",") {
      at++;
      continue;
    }
    if (text.slice(at, at + 2) !== "\r\n") throw new Error(`expected a comma or CRLF at ${at}`);
    at += 2;
    if (rows.length > 0 && rows[0]!.length !== row.length)
      throw new Error(`row ${rows.length} has ${row.length} cells`);
    rows.push(row);
    row = [];
  }
  if (row.length > 0) throw new Error("the last row has no CRLF");
  return rows;
}
