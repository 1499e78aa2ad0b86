import { packDraft, type PackedDraft } from "../draft.ts";
import { readEve } from "../eve/eve.ts";
import { readLine } from "../lines.ts";
import { UNPARSED_TYPE, type ReadContext, type ReadFlow, type Reading } from "../reading.ts";
import type { Line, Sender } from "./sender.ts";
import type { LineCollector, Tally } from "./status.ts";
import { sampleOf } from "./text.ts";

// A line becomes what is handed on, and whoever sent it is told of it in its counts.

const READERS: Readonly<Record<LineCollector, (line: string, context: ReadContext) => Reading>> = {
  syslog: readLine,
  syslog_tls: readLine,
  eve: readEve,
};

export interface ReaderSettings {
  readonly platform: string;
  readonly timezone: string;
  /** Whether a line that no reader understands is kept as an event. */
  readonly keepsUnparsed: boolean;
}

/** What some lines have become, on its way to the store. */
export class Harvest {
  readonly drafts: PackedDraft[] = [];
  readonly flows: { readonly sender: string; readonly flows: ReadFlow[] }[] = [];
  characters = 0;
  flowRecords = 0;

  /** Events and flow records. */
  get size(): number {
    return this.drafts.length + this.flowRecords;
  }
}

export class LineReader {
  readonly #settings: ReaderSettings;

  constructor(settings: ReaderSettings) {
    this.#settings = settings;
  }

  /** Reads a line of a sender; when it came stands in where it has no time of its own. */
  read(line: Line, sender: Sender, into: Harvest): void {
    const { atMs, from } = line;
    const context = { nowMs: atMs, sender: from, timezone: this.#settings.timezone };
    const reading = READERS[sender.collector](line.text, context);
    if (reading.kind === "events") sender.lastEventMs = atMs;
    this.#tell(reading, line, sender, into);
  }

  /** Counts what became of a line and keeps what is to be handed on. */
  #tell(reading: Reading, { text, isReplaced, atMs, from }: Line, tally: Tally, into: Harvest): void {
    switch (reading.kind) {
      case "nothing":
        tally.nothing++;
        return;
      case "refused":
        tally.refuse(reading.reason, reading.message, sampleOf(text), atMs);
        return;
      case "flows":
        tally.flows += reading.flows.length;
        into.flowRecords += reading.flows.length;
        if (into.flows.at(-1)?.sender === from) into.flows.at(-1)!.flows.push(...reading.flows);
        else into.flows.push({ sender: from, flows: [...reading.flows] });
        return;
      case "events":
        for (const event of reading.events) {
          if (event.type === UNPARSED_TYPE && !this.#settings.keepsUnparsed) {
            tally.refuse("unknown_kind", "no reader understands it", sampleOf(text), atMs);
            continue;
          }
          const kept = isReplaced ? { ...event, raw: { ...event.raw, replaced_bytes: true } } : event;
          const draft = packDraft(kept, this.#settings.platform, atMs);
          tally.events++;
          into.drafts.push(draft);
          into.characters += draft.rawText.length;
        }
    }
  }
}
