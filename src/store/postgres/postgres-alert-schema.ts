import { POSTGRES_TIMELINES_SCHEMA } from "./postgres-timelines.ts";

// The tables of alerts. Narrow rows hold what every node has in memory, `cells`, and what SQL itself asks for. A row of an alert
// is rewritten with each change, so that documents, which are long, and words, which seldom change, are in other tables.
//
// `change` numbers the changes that readers follow. `feed` numbers everything that the nodes' indexes must learn: changes, later
// additions and removals. Both come from the one row of `alert_counters`, which a transaction keeps locked until it is committed:
// whoever sees a number sees all lower ones.

export const POSTGRES_ALERTS_SCHEMA = `
CREATE TABLE alert_counters(only_row bool PRIMARY KEY CHECK (only_row), last_change int8 NOT NULL, last_feed int8 NOT NULL,
  last_seq int8 NOT NULL, forgotten_feed int8 NOT NULL);
INSERT INTO alert_counters VALUES (true, 0, 0, 0, 0);
CREATE TABLE alerts(seq int8 PRIMARY KEY, id text COLLATE "C" NOT NULL UNIQUE, version int8 NOT NULL, change int8 NOT NULL,
  feed int8 NOT NULL, rule_id text COLLATE "C" NOT NULL, fold_key text COLLATE "C" NOT NULL, status text COLLATE "C" NOT NULL,
  first_event_at int8 NOT NULL, last_event_at int8 NOT NULL, resolved_at int8, has_entities bool NOT NULL,
  text_hash text NOT NULL, definition_id text COLLATE "C", cells text NOT NULL);
CREATE UNIQUE INDEX alerts_change ON alerts(change);
CREATE UNIQUE INDEX alerts_feed ON alerts(feed);
CREATE INDEX alerts_unresolved ON alerts(rule_id, fold_key, last_event_at, seq) WHERE status <> 'resolved';
CREATE INDEX alerts_resolved ON alerts(resolved_at, seq) WHERE status = 'resolved';
CREATE INDEX alerts_without_entities ON alerts(seq) WHERE NOT has_entities;
CREATE INDEX alerts_definition ON alerts(definition_id) WHERE definition_id IS NOT NULL;
CREATE TABLE alert_documents(seq int8 PRIMARY KEY, document text NOT NULL, events text NOT NULL);
CREATE TABLE alert_words(seq int8 PRIMARY KEY, words tsvector NOT NULL);
CREATE INDEX alert_words_index ON alert_words USING gin(words);
CREATE TABLE alert_events(event bytea NOT NULL, seq int8 NOT NULL, PRIMARY KEY(event, seq));
CREATE TABLE alert_older_events(alert int8 NOT NULL, at int8 NOT NULL, event text COLLATE "C" NOT NULL,
  PRIMARY KEY(alert, at, event));
CREATE TABLE alert_definitions(id text COLLATE "C" PRIMARY KEY, definition text NOT NULL);
CREATE TABLE alert_removals(feed int8 PRIMARY KEY, seq int8 NOT NULL);
${POSTGRES_TIMELINES_SCHEMA}`;
