import type { JsonValue } from "../../model/event.ts";
import { CONTEXT, eventsOf, onlyEvent } from "../context.fixture.ts";
import { OpenEvents } from "./open-events.ts";
import { readBody, type BodyName } from "./webhooks.ts";

// For tests of what consoles post: what became of a body, the one event, or the types of all.

export const read = (name: BodyName, body: JsonValue, open = new OpenEvents()) => readBody(name, body, CONTEXT, open);
export const event = (name: BodyName, body: JsonValue, open?: OpenEvents) => onlyEvent(read(name, body, open));
export const types = (name: BodyName, body: JsonValue, open?: OpenEvents) =>
  eventsOf(read(name, body, open)).map(({ type }) => type);
