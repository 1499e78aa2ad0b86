import { storeContract } from "../testing/contract.ts";
import { alertsContract } from "../testing/contract-alerts.ts";
import { alertFiguresContract } from "../testing/contract-alert-figures.ts";
import { alertListsContract } from "../testing/contract-alert-lists.ts";
import { alertDetailsContract } from "../testing/contract-alert-details.ts";
import { alertWorkContract } from "../testing/contract-alert-work.ts";
import { rulesContract } from "../testing/contract-rules.ts";
import { removalContract } from "../testing/contract-removal.ts";
import { notificationsContract } from "../testing/contract-notifications.ts";
import { viewsContract } from "../testing/contract-views.ts";
import { analysisContract } from "../testing/contract-analysis.ts";
import { leasesContract } from "../testing/contract-leases.ts";
import { openUnderTest } from "./embedded-store.fixture.ts";

storeContract(
  "the embedded store",
  openUnderTest,
  alertsContract,
  alertListsContract,
  alertFiguresContract,
  alertDetailsContract,
  alertWorkContract,
  rulesContract,
  removalContract,
  notificationsContract,
  viewsContract,
  analysisContract,
  leasesContract,
);
