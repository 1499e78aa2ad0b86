import { cellsOf, COLUMNS, type Results } from "./figures.ts";

/** The last results as the table of docs/performance.md. */
export function reportMarkdown({ events, machine, answers }: Results): string {
  const row = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  const days = Object.values(answers).map(({ measuredAt }) => measuredAt.slice(0, 10));
  const lines = [
    `${events.toLocaleString("en")} events over 7 days; ${machine}; measured on ${[...new Set(days)].sort().join(", ")}.`,
    "",
    row(COLUMNS),
    row(COLUMNS.map(() => "---")),
    ...Object.values(answers).flatMap((asked) => asked.answers.map((answer) => row(cellsOf(answer)))),
  ];
  return `${lines.join("\n")}\n`;
}
