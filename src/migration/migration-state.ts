import { parseExact } from "../lib/exact-json.ts";
import type { ArchiveCursor, CaseKind, MigrationNotes } from "../store/ports/archive.ts";

// What a migration has done, kept beside the data that it writes. Saved after each page, so that a migration that was killed
// goes on from there.

export const STORE_NAMES = ["embedded", "postgres", "cluster"] as const;
/** `embedded`: all in the data folder. `postgres`: cases in PostgreSQL. `cluster`: events and flows in OpenSearch, too. */
export type StoreName = (typeof STORE_NAMES)[number];

/** Cannot be done as things are. The message is for the operator. */
export class MigrationRefused extends Error {
  constructor(message: string) {
    super(message);
    this.name = "MigrationRefused";
  }
}

export interface EventProgress {
  /** The page that is being copied begins here. */
  readonly read: ArchiveCursor;
  /** Events of that page that are written. */
  readonly inPage: number;
  readonly written: ArchiveCursor;
  readonly rows: number;
  /** One for each place that cases refer to, in order. */
  readonly marks: readonly { readonly place: string; readonly mark: ArchiveCursor }[];
  readonly isDone: boolean;
}

export interface FlowProgress {
  /** The day that is being copied, and how many of its pages are written. */
  day: number | null;
  pages: number;
  rows: number;
  readonly isDone: boolean;
}

export interface MigrationState {
  readonly id: string;
  readonly from: StoreName;
  readonly to: StoreName;
  /** Tells whether the source is still as it was. */
  readonly source: string;
  readonly startedAt: number;
  readonly completedAt: number | null;
  readonly events: EventProgress;
  /** The target's place for each of the source's, once all events are written. */
  readonly places: Readonly<Record<string, string>> | null;
  readonly flows: Readonly<FlowProgress>;
  readonly cases: readonly CaseKind[];
  readonly isPrepared: boolean;
}

const FORM = 1;

export async function readState(notes: MigrationNotes): Promise<MigrationState | undefined> {
  const text = await notes.read();
  if (text === undefined) return undefined;
  const { form, ...state } = parseExact(text) as MigrationState & { form: number };
  if (form !== FORM)
    throw new MigrationRefused("Another version of Tocsin began this migration. Finish it with that one.");
  return state;
}

export async function saveState(notes: MigrationNotes, state: MigrationState): Promise<void> {
  await notes.save(JSON.stringify({ form: FORM, ...state }));
}

export function newState(base: Pick<MigrationState, "id" | "from" | "to" | "source" | "startedAt">): MigrationState {
  return {
    ...base,
    completedAt: null,
    events: { read: null, inPage: 0, written: null, rows: 0, marks: [], isDone: false },
    places: null,
    flows: { day: null, pages: 0, rows: 0, isDone: false },
    cases: [],
    isPrepared: false,
  };
}
