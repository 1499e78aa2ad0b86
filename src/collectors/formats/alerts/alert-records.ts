import type { JsonObject } from "../../../model/event.ts";
import { parseRecord } from "../json-record.ts";
import type { LineFormat } from "../line-format.ts";
import type { ParsedEvent, ReadContext } from "../reading.ts";

// Alerts of other products as JSON, one object per line, behind a syslog header or in a file.

export interface AlertRecords {
  /** The product, for messages. */
  readonly product: string;
  /** Texts that a line has, so that no other line is parsed. */
  readonly contains: readonly string[];
  readonly recognises: (object: JsonObject) => boolean;
  readonly readAlert: (record: JsonObject, context: ReadContext) => ParsedEvent;
}

export function alertReaders(records: AlertRecords): Pick<LineFormat, "read"> & Required<Pick<LineFormat, "bare">> {
  const { product, contains, recognises, readAlert } = records;
  return {
    read: ({ message }, context) => {
      if (!message.startsWith("{") || !contains.every((text) => message.includes(text))) return undefined;
      const record = parseRecord(message);
      if (record === undefined || !recognises(record)) return undefined;
      return { kind: "events", events: [readAlert(record, context)] };
    },
    bare: {
      recognises,
      read: (line, context) => {
        const record = parseRecord(line);
        if (record === undefined) return { kind: "refused", reason: "malformed", message: "not a JSON object" };
        if (recognises(record)) return { kind: "events", events: [readAlert(record, context)] };
        return { kind: "refused", reason: "unknown_kind", message: `the object is not an alert of ${product}` };
      },
    },
  };
}
