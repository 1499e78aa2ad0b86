import type { JsonObject } from "../../model/event.ts";
import type { ReadContext, ParsedEvent, Reading } from "./reading.ts";

/** A line without its syslog header. */
export interface LineMessage {
  /** Program that wrote the message; null if the header names none. */
  readonly program: string | null;
  readonly message: string;
  /** The message with what was taken for the program in front of it: some devices write a code in its place. */
  readonly whole: string;
  /** Of an RFC 5424 header. */
  readonly messageId?: string | null;
  readonly structuredData?: JsonObject | null;
}

/** A refusal does not count as a reading: another format may understand the message. */
export type MessageReading = Exclude<Reading, { kind: "refused" }>;

/** A line format: one folder and one entry in CODED_FORMATS (line-formats.ts), or a description (described/). */
export interface LineFormat {
  /** Unique name. `tocsin parse --format` accepts it if the format is `bare`. */
  readonly name: string;
  /** Sentence for the table in docs/events.md. */
  readonly about: string;
  /** Devices and programs that write it, for the table of devices; without them, `about` stands there. */
  readonly devices?: readonly string[];
  /** Page in docs/devices that says how to connect them. */
  readonly page?: string;
  /** A line without a syslog header. docs/events.md prints it; line-formats.test.ts reads it behind every form of header. */
  readonly example: string;
  /**
   * Start of the header that the format itself has, such as `CEF:`; contains no space. The syslog header ends in front of it,
   * so that it is not mistaken for a host, a program or another field.
   */
  readonly ownHeader?: string;
  /**
   * Programs that write this format. Their names are also recognised after one or two words that are not a syslog header.
   */
  readonly programs?: readonly string[];
  /**
   * True if only this format reads lines of `programs`. These lines contain text that strangers typed, such as the user name
   * of a login attempt, which can imitate any other format.
   */
  readonly ownsPrograms?: boolean;
  /** True if the format reads no lines of other programs, so that it is not asked about them. */
  readonly needsProgram?: boolean;
  /** Texts that the whole message begins with, so that the format is not asked about others. */
  readonly begins?: readonly string[];
  /** True if the reader turns the structured data of RFC 5424 into fields, so that it is not kept as an object as well. */
  readonly readsStructuredData?: boolean;
  /** Reads a message, with or without a syslog header in front of it; undefined if it is not in this format. Never throws. */
  readonly read: (message: LineMessage, context: ReadContext) => MessageReading | undefined;
  /** For JSON formats that also arrive without syslog, such as in a file: each line is one object. */
  readonly bare?: BareFormat;
}

export interface BareFormat {
  readonly recognises: (object: JsonObject) => boolean;
  /** Reads a line, and refuses it if it is not in this format. Never throws. */
  readonly read: (line: string, context: ReadContext) => Reading;
}

export function oneEvent(event: ParsedEvent | undefined): MessageReading | undefined {
  return event && { kind: "events", events: [event] };
}
