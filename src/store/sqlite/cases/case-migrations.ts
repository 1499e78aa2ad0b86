import type { Migrations } from "../migrations.ts";
import { addAlertFields } from "./alert-fields.ts";
import { ALERT_SCHEMA } from "./alert-tables.ts";
import { makeNotificationTables } from "./notification-tables.ts";
import { makeRuleTables } from "./rule-tables.ts";

export const CASES_MIGRATIONS: Migrations = [
  (db) => {
    db.exec(ALERT_SCHEMA);
    makeRuleTables(db);
    makeNotificationTables(db);
  },
  addAlertFields,
];
