// The fields whose values stand beside the list. Folded ones are not counted.

export interface Facet {
  readonly field: string;
  readonly name: string;
  readonly isOpenAtFirst: boolean;
}

export const FACETS: readonly Facet[] = [
  { field: "severity", name: "Severity", isOpenAtFirst: true },
  { field: "source", name: "Part of the site", isOpenAtFirst: true },
  { field: "type", name: "Type", isOpenAtFirst: true },
  { field: "raw.user", name: "Person", isOpenAtFirst: true },
  { field: "raw.src_ip", name: "From address", isOpenAtFirst: true },
  { field: "raw.dst_ip", name: "To address", isOpenAtFirst: false },
  { field: "raw.dst_port", name: "Port", isOpenAtFirst: false },
  { field: "raw.door", name: "Door", isOpenAtFirst: true },
  { field: "raw.camera", name: "Camera", isOpenAtFirst: true },
  { field: "raw.host", name: "Device", isOpenAtFirst: false },
  { field: "raw.device", name: "Reported by", isOpenAtFirst: false },
  { field: "enrichment.geo.country", name: "Country", isOpenAtFirst: false },
  { field: "raw.action", name: "Action", isOpenAtFirst: false },
  { field: "raw.signature", name: "Signature", isOpenAtFirst: false },
  { field: "raw.query", name: "Name asked for", isOpenAtFirst: false },
];

const STORED = "event-facets";

/** Which facets this browser has open. */
export function openFacets(): ReadonlySet<string> {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(STORED) ?? "null");
    if (Array.isArray(stored)) return new Set(stored.filter((field) => FACETS.some((facet) => facet.field === field)));
  } catch {
    // Somebody else wrote there: start anew.
  }
  return new Set(FACETS.filter(({ isOpenAtFirst }) => isOpenAtFirst).map(({ field }) => field));
}

export function rememberFacets(open: ReadonlySet<string>): void {
  localStorage.setItem(STORED, JSON.stringify([...open]));
}
