import { readFileSync } from "node:fs";
import { isIPv6 } from "node:net";
import { addressBytes } from "../lib/ip.ts";

// Datagrams that the kernel drops because they arrive faster than the process reads. Only the kernel can count them.

/** Column numbers of /proc/net/udp on Linux. */
const LOCAL_ADDRESS = 1;
const DROPS = 12;

/** Datagrams dropped at a UDP socket since it was opened; null if the system does not report them. */
export function systemDropsAt(address: string, port: number): number | null {
  let table: string;
  try {
    table = readFileSync(isIPv6(address) ? "/proc/net/udp6" : "/proc/net/udp", "latin1");
  } catch {
    // Only Linux has this file.
    return null;
  }
  const endpoint = `${wordsOf(address)}:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  for (const line of table.split("\n")) {
    if (!line.includes(endpoint)) continue;
    const columns = line.trim().split(/\s+/);
    const drops = Number(columns[DROPS]);
    if (columns[LOCAL_ADDRESS] === endpoint && Number.isSafeInteger(drops)) return drops;
  }
  return null;
}

/** An address in the table's notation: 32-bit words, each little-endian. */
function wordsOf(address: string): string {
  const bytes = Buffer.from(addressBytes(address.split("%", 1)[0]!)).subarray(isIPv6(address) ? 0 : 12);
  return bytes.swap32().toString("hex").toUpperCase();
}
