import { describeWithPostgres } from "../../../test/cluster/test-database.ts";
import { storeContract } from "../testing/contract.ts";
import { keysContract } from "../testing/contract-keys.ts";
import { managedListsContract } from "../testing/contract-lists.ts";
import { sessionsContract } from "../testing/contract-sessions.ts";
import { viewsContract } from "../testing/contract-views.ts";
import { openWithPostgres } from "./postgres-store.fixture.ts";

describeWithPostgres("cases in PostgreSQL", () => {
  storeContract(
    "a store with PostgreSQL",
    openWithPostgres,
    keysContract,
    sessionsContract,
    viewsContract,
    managedListsContract,
  );
});
