import { readFileSync } from "node:fs";
import { isIPv6 } from "node:net";
import { addressBytes } from "../lib/ip.ts";

// What the system drops of datagrams that come faster than they are read. Nobody else can tell: they never reach us.

/** By the names of the columns, which are those of Linux. */
const LOCAL_ADDRESS = 1;
const DROPS = 12;

/** Datagrams that were dropped at a UDP socket since it was opened; null where the system does not say. */
export function systemDropsAt(address: string, port: number): number | null {
  let table: string;
  try {
    table = readFileSync(isIPv6(address) ? "/proc/net/udp6" : "/proc/net/udp", "latin1");
  } catch {
    // Other systems have no such file.
    return null;
  }
  const place = `${wordsOf(address)}:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  for (const line of table.split("\n")) {
    if (!line.includes(place)) continue;
    const columns = line.trim().split(/\s+/);
    const drops = Number(columns[DROPS]);
    if (columns[LOCAL_ADDRESS] === place && Number.isSafeInteger(drops)) return drops;
  }
  return null;
}

/** An address as the table has it: words of 32 bits, each with its last byte first. */
function wordsOf(address: string): string {
  const bytes = Buffer.from(addressBytes(address.split("%", 1)[0]!)).subarray(isIPv6(address) ? 0 : 12);
  return bytes.swap32().toString("hex").toUpperCase();
}
