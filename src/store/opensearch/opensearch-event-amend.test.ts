import { storeContract } from "../testing/contract.ts";
import { amendContract } from "../testing/contract-amend.ts";
import { openWithEvents, withEventEngines } from "./opensearch-events.fixture.ts";

await withEventEngines("amend of events in OpenSearch", (url) => {
  storeContract("a store with events in OpenSearch", openWithEvents(url, 2), amendContract);
});
