/** A Markdown table with escaped cells. */
export function markdownTable(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map(escapeCell).join(" | ")} |`;
  return [line(header), line(header.map(() => "---")), ...rows.map(line)].join("\n");
}

/** The same with columns of equal width, for pages that the formatter formats. */
export function alignedTable(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const cells = [header, ...rows].map((row) => row.map(escapeCell));
  const widths = header.map((_, column) => Math.max(3, ...cells.map((row) => row[column]!.length)));
  const line = (row: readonly string[]) => `| ${row.map((cell, column) => cell.padEnd(widths[column]!)).join(" | ")} |`;
  return [line(cells[0]!), line(widths.map((width) => "-".repeat(width))), ...cells.slice(1).map(line)].join("\n");
}

function escapeCell(text: string): string {
  return outsideCode(text, (part) => part.replaceAll("<", "\\<"))
    .replaceAll("|", "\\|")
    .replaceAll("\n", " ");
}

export function code(text: string): string {
  return `\`${text}\``;
}

/** Applies `change` outside code spans, where `<platform>` would be read as HTML and disappear. */
function outsideCode(text: string, change: (part: string) => string): string {
  return text
    .split("`")
    .map((part, index) => (index % 2 === 0 ? change(part) : part))
    .join("`");
}

/** A hand-written page with the parts between its `generated` comments regenerated. */
export function printParts(name: string, page: string, parts: Readonly<Record<string, () => string>>): string {
  return page.replaceAll(
    /(<!-- generated: ([^>]+) -->\n)[^]*?(<!-- end -->)/g,
    (_, start: string, part: string, end: string) => {
      const print = parts[part];
      if (!print) throw new Error(`${name} has a generated part ${part} that nothing prints`);
      return `${start}\n${print()}\n\n${end}`;
    },
  );
}
