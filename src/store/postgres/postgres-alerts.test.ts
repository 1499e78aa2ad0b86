import { describeWithPostgres } from "../../../test/cluster/test-database.ts";
import { storeContract } from "../testing/contract.ts";
import { alertDetailsContract } from "../testing/contract-alert-details.ts";
import { alertFiguresContract } from "../testing/contract-alert-figures.ts";
import { alertListsContract } from "../testing/contract-alert-lists.ts";
import { alertSearchContract } from "../testing/contract-alert-search.ts";
import { alertWorkContract } from "../testing/contract-alert-work.ts";
import { alertsContract } from "../testing/contract-alerts.ts";
import { notificationsContract } from "../testing/contract-notifications.ts";
import { removalContract } from "../testing/contract-removal.ts";
import { rulesContract } from "../testing/contract-rules.ts";
import { openWithPostgres } from "./postgres-store.fixture.ts";

describeWithPostgres("alerts in PostgreSQL", () => {
  storeContract(
    "a store with PostgreSQL",
    openWithPostgres,
    alertsContract,
    alertListsContract,
    alertFiguresContract,
    alertDetailsContract,
    alertWorkContract,
    rulesContract,
    removalContract,
    notificationsContract,
  );
});

describeWithPostgres("searches over alerts in PostgreSQL", () => {
  storeContract("a store with PostgreSQL", openWithPostgres, alertSearchContract);
});
