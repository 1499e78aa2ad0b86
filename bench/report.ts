import { cellsOf, COLUMNS, type Results } from "./figures.ts";

/** The last results in the form of docs/performance.md. */
export function reportMarkdown({ events, machine, benchmarks }: Results): string {
  const row = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  const days = Object.values(benchmarks).map(({ measuredAt }) => measuredAt.slice(0, 10));
  const lines = [
    `${events.toLocaleString("en")} events over 7 days; ${machine}; measured on ${[...new Set(days)].sort().join(", ")}.`,
    "",
    row(COLUMNS),
    row(COLUMNS.map(() => "---")),
    ...Object.values(benchmarks).flatMap(({ measurements }) => measurements.map((each) => row(cellsOf(each)))),
  ];
  return `${lines.join("\n")}\n`;
}
