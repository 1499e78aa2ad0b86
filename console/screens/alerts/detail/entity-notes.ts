import type { Event } from "../../../data/client.ts";

interface Enrichment {
  readonly geo?: { readonly country?: string; readonly city?: string };
  readonly abuse_ipdb?: { readonly score?: number };
}

/** What is known about the things that the events name, by their value in lower case. */
export function notesOf(events: readonly Event[]): Map<string, string> {
  const notes = new Map<string, string>();
  for (const { raw, enrichment } of events) {
    const { geo, abuse_ipdb: abuse } = enrichment as Enrichment;
    const place = [geo?.city, geo?.country].filter((word) => word !== undefined).join(", ");
    const reputation = abuse?.score === undefined || abuse.score === 0 ? "" : `abuse score ${abuse.score}`;
    note(raw["src_ip"], [place, reputation].filter((text) => text !== "").join(" · "));
    if (raw["known"] === false) note(raw["src_mac"], "never seen before");
    for (const field of ["door", "camera"]) if (typeof raw["zone"] === "string") note(raw[field], raw["zone"]);
  }
  function note(value: unknown, words: string): void {
    if (typeof value === "string" && words !== "") notes.set(value.toLowerCase(), words);
  }
  return notes;
}
