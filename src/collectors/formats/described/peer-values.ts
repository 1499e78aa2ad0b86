import { addressOf, portOf, textOf } from "../device-values.ts";

// Values that name the other end of a connection, or a party of a call.

interface Peer {
  readonly ip?: string | undefined;
  readonly host?: string | undefined;
  readonly port?: number | undefined;
}

const PORT_BEHIND = /^(.{1,64}):(\d{1,5})$/;
const HOST_NAME = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,252}$/;
const IN_BRACKETS = /^\[([^\]]*)\]$/;

let lastValue = "";
let lastPeer: Peer = {};

/** An address or a host name, with or without a port; empty for any other text. */
export function peerOf(value: string): Peer {
  // The address and the port of a value are asked for one after the other.
  if (value !== lastValue) {
    lastPeer = scanPeer(value);
    lastValue = value;
  }
  return lastPeer;
}

function scanPeer(value: string): Peer {
  const whole = addressOf(value.replace(IN_BRACKETS, "$1"));
  if (whole !== undefined) return { ip: whole };
  const match = PORT_BEHIND.exec(value);
  const where = match === null ? value : match[1]!.replace(IN_BRACKETS, "$1");
  const port = match === null ? undefined : portOf(match[2]!);
  const ip = addressOf(where);
  if (ip !== undefined) return { ip, port };
  return HOST_NAME.test(where) ? { host: where, port } : {};
}

/** The part in front of the `@` of the last SIP address; a text without an address is the user. */
export function sipUserOf(value: string): string | undefined {
  const scheme = Math.max(value.lastIndexOf("sip:"), value.lastIndexOf("sips:"), value.lastIndexOf("tel:"));
  const start = scheme < 0 ? 0 : value.indexOf(":", scheme) + 1;
  const at = value.indexOf("@", start);
  const end = at >= 0 ? at : scheme < 0 ? value.length : endOfUri(value, start);
  return textOf(value.slice(start, end));
}

function endOfUri(value: string, start: number): number {
  const end = value.slice(start).search(/[>;]/);
  return end < 0 ? value.length : start + end;
}
