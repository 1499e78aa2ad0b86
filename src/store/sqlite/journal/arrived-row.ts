import { makeEventPlace, readEventId } from "../../files/event-id.ts";
import type { Arrival } from "../../ports/event-engine.ts";

/** Every stored text begins with the id: `{"id":"evt_…`. */
const ID_START = 7;
const ID_LENGTH = 36;

export function idOfText(text: string): string {
  return text.slice(ID_START, ID_START + ID_LENGTH);
}

/** An event as it is read in the order of arrival. */
export interface ArrivedRow {
  readonly seq: number;
  readonly body: string;
  /** The time of its place, if its id is of another store. */
  readonly arrived: number | null;
}

/** Ids rise in the order of arrival: they are the places. An event from another store has one that sorts like such an id. */
export function placeOfRow({ seq, body, arrived }: ArrivedRow): string {
  const id = idOfText(body);
  return arrived === null ? id : makeEventPlace(arrived, { seq, day: readEventId(id)!.day });
}

export function arrivalOfRow(row: ArrivedRow): Arrival {
  return { id: idOfText(row.body), text: row.body, place: placeOfRow(row) };
}
