import { storeContract } from "../testing/contract.ts";
import { projectionsContract } from "../testing/contract-projections.ts";
import { openUnderTest } from "./embedded-store.fixture.ts";

storeContract("the embedded store", openUnderTest, projectionsContract);
