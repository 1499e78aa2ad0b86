import { storeContract } from "../testing/contract.ts";
import { entitiesContract } from "../testing/contract-entities.ts";
import { openUnderTest } from "./embedded-store.fixture.ts";

storeContract("the embedded store", openUnderTest, entitiesContract);
