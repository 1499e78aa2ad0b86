/** A message about one path of a Sigma rule: `detection.selection.CommandLine|re`. */
export interface ImportNote {
  readonly place: string;
  readonly message: string;
}

/** Messages about one rule. A refusal means that the rule cannot be imported. */
export class ImportNotes {
  readonly refusals: ImportNote[] = [];
  readonly remarks: ImportNote[] = [];

  refuse(place: string, message: string): undefined {
    add(this.refusals, { place, message });
    return undefined;
  }

  remark(place: string, message: string): void {
    add(this.remarks, { place, message });
  }
}

/** Adds a message once: a selection that a condition names twice is read twice. */
function add(notes: ImportNote[], note: ImportNote): void {
  if (!notes.some(({ place, message }) => place === note.place && message === note.message)) notes.push(note);
}
