import type { JsonValue } from "../../../model/event.ts";
import { CONTEXT, eventsOf, onlyEvent } from "../context.fixture.ts";
import { OpenEvents } from "./open-events.ts";
import { readBody, type BodyName } from "./webhooks.ts";

// Shared by the tests of webhooks: the reading of a body, its only event, or the types of all events.

export const read = (name: BodyName, body: JsonValue, open = new OpenEvents()) => readBody(name, body, CONTEXT, open);
export const event = (name: BodyName, body: JsonValue, open?: OpenEvents) => onlyEvent(read(name, body, open));
export const types = (name: BodyName, body: JsonValue, open?: OpenEvents) =>
  eventsOf(read(name, body, open)).map(({ type }) => type);
