import { unreachable } from "../../lib/unreachable.ts";
import { packDraft, type PackedDraft } from "../formats/event-draft.ts";
import { EVE, readEve } from "../formats/eve/eve.ts";
import type { LineFormats } from "../formats/line-formats.ts";
import { GENERIC } from "../formats/generic/generic.ts";
import { CsvTables } from "../formats/generic/csv-tables.ts";
import { readWithFormats } from "../formats/read-with-formats.ts";
import { UNPARSED_TYPE, type ParsedFlow, type Reading } from "../formats/reading.ts";
import type { ReceivedLine, LineSender } from "./line-sender.ts";
import { FormatCounts } from "./format-counts.ts";
import type { LineCollector, CollectTally } from "./line-status.ts";
import { sampleOf } from "./line-text.ts";

// Reads lines into event drafts and flow records, and counts the outcomes for their sender.

/** The format of collectors that have only one. */
const FORMATS: Readonly<Record<LineCollector, string | null>> = { syslog: null, syslog_tls: null, eve: EVE.name };

export interface LineReaderSettings {
  readonly platform: string;
  readonly timezone: string;
  /** Keeps lines that no format understands as events of type `unparsed`. */
  readonly keepsUnparsed: boolean;
}

/** Drafts and flow records of a batch of lines, with their sizes. */
export class ReadTally {
  readonly drafts: PackedDraft[] = [];
  readonly flows: { readonly sender: string; readonly flows: ParsedFlow[] }[] = [];
  characters = 0;
  flowRecords = 0;

  /** Number of events and flow records. */
  get size(): number {
    return this.drafts.length + this.flowRecords;
  }
}

export class LineReader {
  readonly #settings: LineReaderSettings;
  readonly counts = new FormatCounts();
  readonly #tables = new CsvTables();
  #formats: LineFormats;

  constructor(settings: LineReaderSettings, formats: LineFormats) {
    this.#settings = settings;
    this.#formats = formats;
  }

  /** Lines are read with other formats from now on. */
  use(formats: LineFormats): void {
    this.#formats = formats;
    this.counts.keepOnly(formats);
  }

  /** Reads a line of a sender. The time of arrival stands in for a missing time. */
  read(line: ReceivedLine, sender: LineSender, tally: ReadTally): void {
    const { atMs, from } = line;
    const context = { nowMs: atMs, sender: from, timezone: this.#settings.timezone, tables: this.#tables };
    const { collector } = sender;
    const reading =
      collector === "eve" ? readEve(line.text, context) : readWithFormats(this.#formats, line.text, context);
    if (reading.kind === "events") sender.lastEventMs = atMs;
    this.#count(reading, line, sender, tally);
    if (reading.kind === "refused") return;
    this.counts.add(reading.format ?? FORMATS[collector]);
    if (reading.format === GENERIC) sender.generic++;
    sender.noteReading(line.text, reading, FORMATS[collector], atMs);
  }

  #count(
    reading: Reading,
    { text, isReplaced, atMs, from }: ReceivedLine,
    counts: CollectTally,
    tally: ReadTally,
  ): void {
    switch (reading.kind) {
      case "nothing":
        counts.nothing++;
        return;
      case "refused":
        counts.refuse(reading.reason, reading.message, sampleOf(text), atMs);
        return;
      case "flows":
        counts.flows += reading.flows.length;
        tally.flowRecords += reading.flows.length;
        if (tally.flows.at(-1)?.sender === from) tally.flows.at(-1)!.flows.push(...reading.flows);
        else tally.flows.push({ sender: from, flows: [...reading.flows] });
        return;
      case "events":
        for (const event of reading.events) {
          if (event.type === UNPARSED_TYPE) counts.noteUnparsed(event, atMs);
          if (event.type === UNPARSED_TYPE && !this.#settings.keepsUnparsed) {
            counts.refuse("unknown_kind", "no reader understands it", sampleOf(text), atMs);
            continue;
          }
          const kept = isReplaced ? { ...event, raw: { ...event.raw, replaced_bytes: true } } : event;
          const draft = packDraft(kept, this.#settings.platform, atMs);
          counts.events++;
          tally.drafts.push(draft);
          tally.characters += draft.rawText.length;
        }
        return;
      default:
        unreachable(reading);
    }
  }
}
