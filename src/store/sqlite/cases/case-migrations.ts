import type { Migrations } from "../migrations.ts";
import { addAlertFields } from "./alert-row-fields.ts";
import { ALERT_SCHEMA, TAGS_SCHEMA } from "./alert-tables.ts";
import { DEFINITIONS_SCHEMA } from "./definition-table.ts";
import { OLDER_EVENTS_SCHEMA } from "./older-events.ts";
import { makeNotificationTables } from "./notification-tables.ts";
import { makeRuleTables } from "./rule-tables.ts";
import { VIEWS_SCHEMA } from "./view-tables.ts";

export const CASES_MIGRATIONS: Migrations = [
  (db) => {
    db.exec(ALERT_SCHEMA);
    makeRuleTables(db);
    makeNotificationTables(db);
  },
  DEFINITIONS_SCHEMA,
  OLDER_EVENTS_SCHEMA,
  VIEWS_SCHEMA,
  TAGS_SCHEMA,
  addAlertFields,
];
