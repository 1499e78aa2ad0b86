import { packDraft, type PackedDraft } from "../draft.ts";
import { readEve } from "../eve/eve.ts";
import { readLine } from "../lines.ts";
import { UNPARSED_TYPE, type ReadContext, type ReadFlow, type Reading } from "../reading.ts";
import type { Line, Sender } from "./sender.ts";
import type { LineCollector, Tally } from "./status.ts";
import { sampleOf, type LineText } from "./text.ts";

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

  get isEmpty(): boolean {
    return this.drafts.length === 0 && this.flows.length === 0;
  }
}

export class LineReader {
  readonly #settings: ReaderSettings;

  constructor(settings: ReaderSettings) {
    this.#settings = settings;
  }

  /** Reads a line of a sender. `nowMs` stands in where it has no time of its own. */
  read(line: Line, sender: Sender, into: Harvest): void {
    const reading = this.#readingOf(sender.collector, line, sender.address, line.atMs);
    if (reading.kind === "events") sender.lastEventMs = line.atMs;
    this.tell(reading, line, { tally: sender, sender: sender.address, atMs: line.atMs }, into);
  }

  #readingOf(collector: LineCollector, line: LineText, sender: string, nowMs: number): Reading {
    return READERS[collector](line.text, { nowMs, sender, timezone: this.#settings.timezone });
  }

  /** Counts what became of a line and keeps what is to be handed on. */
  tell(
    reading: Reading,
    { text, isReplaced }: LineText,
    { tally, sender, atMs }: { tally: Tally; sender: string; atMs: number },
    into: Harvest,
  ): void {
    switch (reading.kind) {
      case "nothing":
        tally.nothing++;
        return;
      case "refused":
        tally.refuse(reading.reason, reading.message, sampleOf(text), atMs);
        return;
      case "flows":
        tally.flows += reading.flows.length;
        if (into.flows.at(-1)?.sender === sender) into.flows.at(-1)!.flows.push(...reading.flows);
        else into.flows.push({ sender, flows: [...reading.flows] });
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
