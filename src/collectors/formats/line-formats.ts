import { CEF } from "./cef/cef.ts";
import { EVE } from "./eve/eve.ts";
import type { LineFormat } from "./line-format.ts";
import { DHCP_LEASES, ROGUE_DHCP } from "./linux/dhcp-leases.ts";
import { NETFILTER } from "./linux/netfilter.ts";
import { SSH_LOGINS } from "./linux/ssh-logins.ts";

/**
 * Every line format. The first one that understands a message reads it. The syslog header, the line reader, `tocsin parse`,
 * docs/events.md and the tests take all they know about formats from this table.
 */
export const LINE_FORMATS = [
  CEF,
  NETFILTER,
  SSH_LOGINS,
  DHCP_LEASES,
  ROGUE_DHCP,
  EVE,
] as const satisfies readonly LineFormat[];

export type BareFormatName = Extract<(typeof LINE_FORMATS)[number], { readonly bare: object }>["name"];

const ALL: readonly LineFormat[] = LINE_FORMATS;
const OWN_HEADERS = ALL.flatMap(({ ownHeader }) => ownHeader ?? []);

/** Formats of messages whose program no format owns, in the order in which they are tried. */
export const SHARED_FORMATS = ALL.filter(({ ownsPrograms }) => !ownsPrograms);

/** The only format for the lines of a program. */
export const PROGRAM_OWNERS: ReadonlyMap<string, LineFormat> = new Map(
  ALL.filter(({ ownsPrograms }) => ownsPrograms).flatMap((format) =>
    (format.programs ?? []).map((program) => [program, format] as const),
  ),
);

export const FORMAT_PROGRAMS: readonly string[] = ALL.flatMap(({ programs }) => programs ?? []);

export const BARE_FORMATS = ALL.flatMap(({ name, bare }) =>
  bare === undefined ? [] : { name: name as BareFormatName, ...bare },
);

/** True if a format's own header begins at this position. */
export function beginsOwnHeader(text: string, at: number): boolean {
  for (const header of OWN_HEADERS) if (text.startsWith(header, at)) return true;
  return false;
}
