import type { Fault } from "../../../data/client.ts";

// Entries of a watch list that are pasted as text: one a line, and what stands behind # is a note.

export interface EntryLine {
  /** From 1. */
  readonly line: number;
  readonly value: string;
  readonly note: string | null;
}

const COMMENT = /(^|\s)(#|;|\/\/)/;

export function readEntryLines(text: string): EntryLine[] {
  return text.split(/\r?\n/).flatMap((whole, index) => {
    const comment = whole.search(COMMENT);
    const value = (comment < 0 ? whole : whole.slice(0, comment)).trim().replace(/\s*-\s*/, "-");
    if (value === "") return [];
    const note =
      comment < 0
        ? ""
        : whole
            .slice(comment)
            .replace(/^[#;/\s]+/, "")
            .trim();
    return [
      { line: index + 1, value: isRange(value) ? value : value.split(/[\s,]+/)[0]!, note: note === "" ? null : note },
    ];
  });
}

const isRange = (value: string) => /^\S+-\S+$/.test(value);

export interface RefusedLine {
  readonly line: number;
  readonly value: string;
  readonly message: string;
}

/** The lines that the service refused, by the places of the entries that were sent. */
export function refusedLines(lines: readonly EntryLine[], faults: readonly Fault[]): RefusedLine[] {
  return faults.flatMap(({ field, message }) => {
    const place = /^entries\[(\d+)\]/.exec(field);
    const line = place === null ? undefined : lines[Number(place[1])];
    return line === undefined ? [] : [{ line: line.line, value: line.value, message }];
  });
}
