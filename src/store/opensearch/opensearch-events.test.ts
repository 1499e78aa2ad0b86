import { storeContract } from "../testing/contract.ts";
import { arrivalsContract, eventRemovalContract } from "../testing/contract-arrivals.ts";
import { eventsContract, listsContract } from "../testing/contract-events.ts";
import { openWithEvents, withEventEngines } from "./opensearch-events.fixture.ts";

await withEventEngines("events in OpenSearch", (url) => {
  storeContract(
    "a store with events in OpenSearch",
    openWithEvents(url, 2),
    eventsContract,
    listsContract,
    arrivalsContract,
    eventRemovalContract,
  );
});
