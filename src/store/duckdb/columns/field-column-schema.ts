/**
 * The columns of `events` that hold the texts of a field: the name of the column, the path of the field, and the last segment up to
 * which it is filled.
 */
export const FIELD_COLUMN_TABLE =
  "CREATE TABLE IF NOT EXISTS field_columns(name VARCHAR, path VARCHAR, filled INTEGER)";
