// Alarms of makers whose names we do not know, in CEF and LEEF. A verdict on traffic between two addresses is enough to know what
// the alarm is: the name of the product or of the alarm tells a packet filter from an intrusion detection.

/** Products and names that report attacks. */
const THREAT = /\b(?:ips|ids|smartdefense|intrusion|threats?|anti-?bot|vulnerability|spyware|attacks?|exploit)\b/i;
const MALWARE = /\b(?:anti-?virus|virus|malware|threat emulation|anti-?malware)\b/i;
const FILTER =
  /\b(?:firewall|firewall-1|vpn-1|traffic|policy|packet filter|ngfw|utm|access control|pan-os|fortigate)\b/i;

/** A type of ours; undefined if the alarm does not tell. `verdict`: `allow`, `block` or `reject`. */
export function typeOfForeignAlarm(
  product: string,
  name: string,
  category: string,
  verdict: string,
  hasBothEnds: boolean,
): string | undefined {
  if (verdict === "" || !hasBothEnds) return undefined;
  const words = `${product} ${name} ${category}`;
  if (MALWARE.test(words)) return "malware_found";
  if (THREAT.test(words)) return "ids_alert";
  if (!FILTER.test(words)) return undefined;
  return verdict === "allow" ? "firewall_allowed" : "firewall_blocked";
}
