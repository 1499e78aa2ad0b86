import { CROWDSEC } from "./alerts/crowdsec.ts";
import { WAZUH } from "./alerts/wazuh.ts";
import { CEF } from "./cef/cef.ts";
import { readShipped } from "./described/shipped.ts";
import { EVE } from "./eve/eve.ts";
import type { LineFormat } from "./line-format.ts";
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

/** Programs whose names are also ordinary words: behind other words they are part of a sentence. */
const COMMON_WORDS = ["auth", "cron", "docker", "ipsec", "login", "remote", "samba", "shell", "su", "systemd"];

/**
 * The formats of lines. The first one that understands a message reads it. The line reader, `tocsin parse`, docs/events.md and
 * the tests take all they know about formats from here.
 */
export class LineFormats {
  readonly all: readonly LineFormat[];
  /** Formats of messages whose program no format owns, in the order in which they are tried. */
  readonly shared: readonly LineFormat[];
  /** The formats for the lines of a program, which no other format reads. */
  readonly owners: ReadonlyMap<string, readonly LineFormat[]>;
  /**
   * A program name after one or two words that are not a syslog header: the time is missing, or the host has a second name.
   */
  readonly lateProgram: RegExp;

  /** `taught`: formats of the operator. They come first, since they were written for lines that were read otherwise. */
  constructor(taught: readonly LineFormat[] = []) {
    this.all = [...taught, ...CODED, ...readShipped().map(({ format }) => format)];
    this.shared = this.all.filter(({ ownsPrograms }) => !ownsPrograms);
    const owners = new Map<string, LineFormat[]>();
    for (const format of this.all) {
      if (!format.ownsPrograms) continue;
      for (const program of format.programs ?? []) owners.set(program, [...(owners.get(program) ?? []), format]);
    }
    this.owners = owners;
    const programs = new Set(this.all.flatMap((format) => format.programs ?? []));
    const names = [...programs].map(RegExp.escape).join("|");
    const words = `(?:(?:[^\\s:=|[\\]]{1,255} ){1,2}(?!(?:${COMMON_WORDS.join("|")})[[:]))?`;
    this.lateProgram = new RegExp(`^${words}(${names})(?:\\[(\\d{1,9})\\])?: *`);
  }
}

let known: LineFormats | undefined;

/** The formats that we know, without those of an operator. */
export function knownFormats(): LineFormats {
  return (known ??= new LineFormats());
}
