import { storeContract } from "../testing/contract.ts";
import { arrivalsContract, eventRemovalContract } from "../testing/contract-arrivals.ts";
import { eventsContract, listsContract } from "../testing/contract-events.ts";
import { keysContract } from "../testing/contract-keys.ts";
import { sessionsContract } from "../testing/contract-sessions.ts";
import { managedListsContract } from "../testing/contract-lists.ts";
import { openUnderTest } from "./embedded-store.fixture.ts";

storeContract(
  "the embedded store",
  openUnderTest,
  eventsContract,
  listsContract,
  keysContract,
  sessionsContract,
  managedListsContract,
  arrivalsContract,
  eventRemovalContract,
);
