import { stripVTControlCharacters, styleText } from "node:util";

// Output for people: tables and progress bars.

export function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** Characters that a terminal interprets: control characters and bidirectional marks. */
const OBEYED = /[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu;

/** Escapes characters that a terminal interprets and JSON leaves alone. */
export function printJson(value: unknown): void {
  const escape = (letter: string) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`;
  print(JSON.stringify(value).replace(OBEYED, escape));
}

export function bold(text: string): string {
  return styleText("bold", text, { stream: process.stdout });
}

/** Columns as wide as their widest cell. */
export function formatTable(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = header.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => stripVTControlCharacters(row[column]!).length)),
  );
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, column) => cell + " ".repeat(widths[column]! - stripVTControlCharacters(cell).length))
      .join("  ")
      .trimEnd();
  return [bold(line(header)), ...rows.map(line)].join("\n");
}

/** Untrusted text without terminal control sequences. */
export function plain(text: string): string {
  return stripVTControlCharacters(text).replace(OBEYED, "?");
}

const BAR_CELLS = 30;
const REDRAW_EVERY_MS = 100;
const LINES_WITHOUT_TERMINAL = 10;

/**
 * Shows the progress of a long task on standard error, which leaves standard output to the result: a bar on a terminal,
 * otherwise a line every 10 %.
 */
export function startProgress(label: string, stream: NodeJS.WriteStream = process.stderr) {
  let drawnAt = 0;
  let lastTenth = 0;
  const draw = (done: number, total: number) => {
    const share = total === 0 ? 1 : Math.min(1, done / total);
    const filled = Math.round(share * BAR_CELLS);
    const bar = "█".repeat(filled) + "░".repeat(BAR_CELLS - filled);
    stream.write(`\r${label} ${bar} ${Math.floor(share * 100)}% ${done.toLocaleString("en-US")}`);
  };
  return {
    report(done: number, total: number): void {
      if (stream.isTTY) {
        const now = Date.now();
        if (now - drawnAt < REDRAW_EVERY_MS && done < total) return;
        drawnAt = now;
        draw(done, total);
        return;
      }
      const tenth = total === 0 ? LINES_WITHOUT_TERMINAL : Math.floor((done / total) * LINES_WITHOUT_TERMINAL);
      if (tenth <= lastTenth) return;
      lastTenth = tenth;
      stream.write(`${label}: ${tenth * 10}%, ${done.toLocaleString("en-US")}\n`);
    },
    end(): void {
      if (stream.isTTY && drawnAt > 0) stream.write("\n");
    },
  };
}
