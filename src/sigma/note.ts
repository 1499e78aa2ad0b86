/** Something to say about one place of a Sigma rule: `detection.selection.CommandLine|re`. */
export interface Note {
  readonly place: string;
  readonly message: string;
}

/** What is said about one rule while it is read. A refusal means that the rule cannot be taken. */
export class Notes {
  readonly refusals: Note[] = [];
  readonly remarks: Note[] = [];

  refuse(place: string, message: string): undefined {
    add(this.refusals, { place, message });
    return undefined;
  }

  remark(place: string, message: string): void {
    add(this.remarks, { place, message });
  }
}

/** A selection that is named twice in a condition is read twice, and told about once. */
function add(notes: Note[], note: Note): void {
  if (!notes.some(({ place, message }) => place === note.place && message === note.message)) notes.push(note);
}
