import { storeContract } from "../testing/contract.ts";
import { searchContract } from "../testing/contract-search.ts";
import { openWithEvents, withEventEngines } from "./opensearch-events.fixture.ts";

await withEventEngines("search of events in OpenSearch", (url) => {
  storeContract("a store with events in OpenSearch", openWithEvents(url, 2), searchContract);
});
