import type { Event } from "../../data/client.ts";

// What a person reads of a quiet hour: not each name that a computer asked for.

const QUIET =
  /^(motion|light_motion|sensor_motion|detection|detection_ended|sound|animal|vehicle|license_plate|dns_query|http|tls|fileinfo|flow|firewall_|drop|dhcp_(lease|release|request|discover|offer)|client_|sip_scan|sip_registered|sip_registration_failed|sip_unregistered|session_|backup_finished|door_closed|door_status|sensor_closed|call_ended)/;

export function isWorthReading(event: Pick<Event, "type" | "severity" | "raw">): boolean {
  if (event.severity === "critical" || event.severity === "high") return true;
  // A device that nobody knows is news even where devices come and go.
  if (event.raw["known"] === false || event.raw["host"] === "unknown") return true;
  return !QUIET.test(event.type);
}
