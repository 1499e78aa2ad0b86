import type { Migrations } from "../migrations.ts";
import { ALERT_SCHEMA } from "./alerts.ts";
import { makeNotificationTables } from "./notifications.ts";
import { makeRuleTables } from "./rules.ts";

export const CASES_MIGRATIONS: Migrations = [
  (db) => {
    db.exec(ALERT_SCHEMA);
    makeRuleTables(db);
    makeNotificationTables(db);
  },
];
