import { CROWDSEC } from "./alerts/crowdsec.ts";
import { WAZUH } from "./alerts/wazuh.ts";
import { CEF } from "./cef/cef.ts";
import { describedFormat } from "./described/described-format.ts";
import type { FormatDescription } from "./described/description.ts";
import { LEEF } from "./leef/leef.ts";
import { EVE } from "./eve/eve.ts";
import type { LineFormat, LineMessage } from "./line-format.ts";
import { AUDIT_LOG, AUDITD } from "./linux/auditd.ts";
import { DHCP_LEASES, ROGUE_DHCP } from "./linux/dhcp-leases.ts";
import { NETFILTER } from "./linux/netfilter.ts";
import { PAM } from "./linux/pam.ts";
import { SSH_LOGINS } from "./linux/ssh-logins.ts";
import { SUDO } from "./linux/sudo.ts";
import { THREE_CX_CALLS } from "./telephony/three-cx.ts";
import { ACCESS_FILE, ACCESS_LOG } from "./web/access-log.ts";
import { WINDOWS_JSON } from "./windows/windows-json.ts";
import { WINDOWS_XML } from "./windows/windows-xml.ts";
import { ZEEK_JSON } from "./zeek/zeek-json.ts";
import { ZEEK_TSV } from "./zeek/zeek-tsv.ts";

/** Formats that are read by code. Those that a description suffices for are in described/shipped. */
export const CODED_FORMATS = [
  CEF,
  LEEF,
  NETFILTER,
  SSH_LOGINS,
  DHCP_LEASES,
  ROGUE_DHCP,
  EVE,
  THREE_CX_CALLS,
  PAM,
  SUDO,
  AUDITD,
  AUDIT_LOG,
  WINDOWS_JSON,
  WINDOWS_XML,
  ZEEK_JSON,
  ZEEK_TSV,
  ACCESS_LOG,
  ACCESS_FILE,
  WAZUH,
  CROWDSEC,
] as const satisfies readonly LineFormat[];

const CODED: readonly LineFormat[] = CODED_FORMATS;

export type BareFormatName = Extract<(typeof CODED_FORMATS)[number], { readonly bare: object }>["name"];

export const BARE_FORMATS = CODED.flatMap(({ name, bare }) =>
  bare === undefined ? [] : { name: name as BareFormatName, ...bare },
);

const OWN_HEADERS = CODED.flatMap(({ ownHeader }) => ownHeader ?? []);

/** True if a format's own header begins at this position. */
export function beginsOwnHeader(text: string, at: number): boolean {
  for (const header of OWN_HEADERS) if (text.startsWith(header, at)) return true;
  return false;
}

const ASCII_MAX = 0x7f;

/** Formats as plain data, which crosses threads. */
export interface FormatDescriptions {
  readonly shipped: readonly FormatDescription[];
  /** Formats of the operator. */
  readonly taught: readonly FormatDescription[];
}

/**
 * The formats of lines. The first one that understands a message reads it. The line reader, `tocsin parse`, docs/events.md and
 * the tests take all they know about formats from here.
 */
export class LineFormats {
  readonly descriptions: FormatDescriptions;
  readonly all: readonly LineFormat[];
  /** Formats of messages whose program no format owns, in the order in which they are tried. */
  readonly shared: readonly LineFormat[];
  /** The formats for the lines of a program, which no other format reads. */
  readonly owners: ReadonlyMap<string, readonly LineFormat[]>;
  /** The shared formats that may read a message, by its program and the code of its first character. */
  readonly #candidates = new Map<string, (readonly LineFormat[])[]>();
  /** Programs that formats name. */
  readonly programs: ReadonlySet<string>;

  /** Taught formats come first, since they were written for lines that are read otherwise; one replaces a shipped namesake. */
  constructor(descriptions: FormatDescriptions) {
    this.descriptions = descriptions;
    const replaced = new Set(descriptions.taught.map(({ format }) => format));
    const shipped = descriptions.shipped.filter(({ format }) => !replaced.has(format)).map(describedFormat);
    const taught = descriptions.taught.map(describedFormat);
    this.all = [...taught, ...CODED, ...shipped];
    this.shared = this.all.filter(({ ownsPrograms }) => !ownsPrograms);
    const owned = new Set(this.all.flatMap(({ ownsPrograms, programs = [] }) => (ownsPrograms ? programs : [])));
    // A taught format that names an owned program is meant for its lines, too.
    const isOwner = (format: LineFormat) => (format.ownsPrograms ?? false) || taught.includes(format);
    const owners = new Map<string, LineFormat[]>();
    for (const format of this.all.filter(isOwner)) {
      for (const program of format.programs ?? []) {
        if (owned.has(program)) owners.set(program, [...(owners.get(program) ?? []), format]);
      }
    }
    this.owners = owners;
    this.programs = new Set(this.all.flatMap((format) => format.programs ?? []));
  }

  /** The formats to try on a message, in their order. */
  candidates({ program, whole }: LineMessage): readonly LineFormat[] {
    const owned = program === null ? undefined : this.owners.get(program);
    if (owned !== undefined) return owned;
    const known = program !== null && this.programs.has(program) ? program : "";
    let byFirst = this.#candidates.get(known);
    if (byFirst === undefined) this.#candidates.set(known, (byFirst = []));
    const first = whole.charCodeAt(0);
    // All other characters are one case.
    const index = first <= ASCII_MAX ? first : ASCII_MAX + 1;
    return (byFirst[index] ??= this.shared.filter(({ programs, needsProgram, begins }) => {
      if (needsProgram && !programs?.includes(known)) return false;
      return begins === undefined || index > ASCII_MAX || begins.some((text) => text.charCodeAt(0) === first);
    }));
  }
}
