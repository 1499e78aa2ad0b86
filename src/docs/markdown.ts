/** A Markdown table; what is in a cell cannot break out of it. */
export function markdownTable(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const cell = (text: string) =>
    outsideCode(text, (part) => part.replaceAll("<", "\\<"))
      .replaceAll("|", "\\|")
      .replaceAll("\n", " ");
  const line = (cells: readonly string[]) => `| ${cells.map(cell).join(" | ")} |`;
  return [line(header), line(header.map(() => "---")), ...rows.map(line)].join("\n");
}

export function code(text: string): string {
  return `\`${text}\``;
}

/** Changes what stands outside of code spans: there a `<platform>` would be taken for HTML and vanish. */
function outsideCode(text: string, change: (part: string) => string): string {
  return text
    .split("`")
    .map((part, index) => (index % 2 === 0 ? change(part) : part))
    .join("`");
}

/** A page that is written by hand, with what stands between its marks as it is printed now. */
export function printParts(name: string, page: string, parts: Readonly<Record<string, () => string>>): string {
  return page.replaceAll(
    /(<!-- printed: ([^>]+) -->\n)[^]*?(<!-- end -->)/g,
    (_, start: string, part: string, end: string) => {
      const print = parts[part];
      if (!print) throw new Error(`${name} has a mark for ${part}, which nothing prints`);
      return `${start}\n${print()}\n\n${end}`;
    },
  );
}
