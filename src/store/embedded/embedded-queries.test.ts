import { storeContract } from "../testing/contract.ts";
import { queriesContract } from "../testing/contract-queries.ts";
import { openUnderTest } from "./embedded-store.fixture.ts";

storeContract("the embedded store", openUnderTest, queriesContract);
