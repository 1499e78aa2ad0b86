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
