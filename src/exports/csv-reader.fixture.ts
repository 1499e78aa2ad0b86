/** RFC 4180 to the letter: CRLF after every row, the same number of cells in each, quotes only where they belong. */
export function readCsv(text: string): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  let at = 0;
  while (at < text.length) {
    let cell = "";
    if (text[at] === '"') {
      for (at++; ; at++) {
        if (at >= text.length) throw new Error("a quoted cell has no end");
        if (text[at] === '"') {
          if (text[at + 1] !== '"') break;
          at++;
        }
        cell += text[at];
      }
      at++;
    } else {
      while (at < text.length && !",\r\n".includes(text[at]!)) {
        if (text[at] === '"') throw new Error(`a quote inside a bare cell at ${at}`);
        cell += text[at++];
      }
    }
    row.push(cell);
    if (text[at] === ",") {
      at++;
      continue;
    }
    if (text.slice(at, at + 2) !== "\r\n") throw new Error(`neither a comma nor CRLF at ${at}`);
    at += 2;
    if (rows.length > 0 && rows[0]!.length !== row.length)
      throw new Error(`row ${rows.length} has ${row.length} cells`);
    rows.push(row);
    row = [];
  }
  if (row.length > 0) throw new Error("the last row has no CRLF");
  return rows;
}
