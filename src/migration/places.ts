import { parseExact } from "../lib/exact-json.ts";
import type { Rule } from "../model/rule.ts";
import type { CaseArchive, CaseKind, CaseRecord } from "../store/ports/archive.ts";

// Places in the order of arrival are a store's own. Detection's progress and rules refer to some.

/** The places that stored cases refer to, in order, and the one up to which detection has come. */
export interface CasePlaces {
  readonly places: readonly string[];
  readonly position: string | null;
}

export async function placesOfCases(cases: CaseArchive): Promise<CasePlaces> {
  const places = new Set<string>();
  let position: string | null = null;
  for await (const records of cases.read("detection")) {
    for (const { place } of records) if (place !== null) position = place as string;
  }
  if (position !== null) places.add(position);
  for await (const records of cases.read("rules")) {
    for (const record of records) {
      mapRulePlaces(record, (place) => {
        places.add(place);
        return place;
      });
    }
  }
  return { places: [...places].sort(), position };
}

/** The record with the target's places instead of the source's. */
export function withPlaces(kind: CaseKind, record: CaseRecord, placeOf: (place: string) => string): CaseRecord {
  if (kind === "rules") return mapRulePlaces(record, placeOf);
  if (kind !== "detection" || record["place"] === null) return record;
  return { ...record, place: placeOf(record["place"] as string) };
}

function mapRulePlaces(record: CaseRecord, placeOf: (place: string) => string): CaseRecord {
  const rule = parseExact(record["document"] as string) as Rule;
  const mapped = (place: string | null) => (place === null ? null : placeOf(place));
  const exceptions = rule.exceptions.map((exception) => ({
    ...exception,
    ...(typeof exception.activeAfter === "string" && { activeAfter: placeOf(exception.activeAfter) }),
  }));
  const ended = rule.endedExceptions?.map((exception) => ({
    ...exception,
    ...(typeof exception.activeAfter === "string" && { activeAfter: placeOf(exception.activeAfter) }),
    upTo: placeOf(exception.upTo),
  }));
  const document = {
    ...rule,
    activeAfter: mapped(rule.activeAfter ?? null),
    exceptions,
    ...(ended && { endedExceptions: ended }),
  };
  return { ...record, document: JSON.stringify(document) };
}
