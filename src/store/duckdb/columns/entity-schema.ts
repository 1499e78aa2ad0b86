// The tables of entities in the columns.

/**
 * The columns of a table of entities, in the order in which `appendEntities` writes them. `folded` is the value in lower case;
 * `value` is null if it is the same, as for most, so that a search decompresses one text of each row and not two.
 */
export const ENTITY_COLUMN_LIST =
  "day BIGINT, kind UTINYINT, value VARCHAR, folded VARCHAR, events BIGINT, first_ts BIGINT, last_ts BIGINT";

/**
 * `entities` may have several rows of an entity in a day, which are merged from time to time. `lot` is the segment of a row, 0 after
 * a merge: a query leaves out segments that are flushed after its snapshot, whose memtables it reads. `entity_backlog` has days whose
 * events with sequence numbers above `after`, up to `last`, have yet to be counted: those that an earlier version stored, or
 * all of a day that lost rows.
 */
export const ENTITY_TABLES = `
  CREATE TABLE IF NOT EXISTS entities(${ENTITY_COLUMN_LIST}, lot INTEGER);
  CREATE TABLE IF NOT EXISTS entity_backlog(day BIGINT, after BIGINT, last BIGINT)`;

/** Starts over with all rows on disk. */
export const RECOUNT_ENTITIES = `
  DELETE FROM entities; DELETE FROM entity_backlog;
  INSERT INTO entity_backlog SELECT day, 0, seq FROM marks`;

export const ENTITY_COLUMNS = "day, kind, value, folded, events, first_ts, last_ts";
