import { Fragment } from "react";
import type { Event } from "../../data/client.ts";
import { sentenceOf } from "../../text/sentences.ts";
import { EntityLink } from "./entity-link.tsx";

/** An event in words; what it names leads to its page. */
export function Sentence({ event, links = true }: { event: Pick<Event, "type" | "raw">; links?: boolean }) {
  return sentenceOf(event).map((part, index) => (
    // The parts of a sentence never change places.
    // oxlint-disable-next-line react/no-array-index-key
    <Fragment key={index}>
      {typeof part === "string" ? (
        part
      ) : links ? (
        <EntityLink {...part} />
      ) : (
        <span className="font-medium text-ink">{part.value}</span>
      )}
    </Fragment>
  ));
}
