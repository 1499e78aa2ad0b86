import { stripVTControlCharacters, styleText } from "node:util";

// What commands show to people: tables, a bar that grows.

export function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** What a terminal obeys instead of showing it: control characters, and marks that turn the order of letters around. */
const OBEYED = /[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu;

/** JSON leaves some of these as they are; escaped they say the same. */
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

/** Text that came from elsewhere, made harmless to a terminal. */
export function plain(text: string): string {
  return stripVTControlCharacters(text).replace(OBEYED, "?");
}

const BAR_CELLS = 30;
const REDRAW_EVERY_MS = 100;
const LINES_WITHOUT_TERMINAL = 10;

/**
 * Shows how far a long task is, on standard error so that standard output stays for the answer: a bar on a terminal,
 * a line every tenth of the way elsewhere.
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
