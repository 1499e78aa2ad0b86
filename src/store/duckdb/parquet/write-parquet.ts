import { DuckDBInstance } from "@duckdb/node-api";
import type { ParquetTask } from "../../../model/export.ts";
import { interruptOn } from "../interrupt.ts";
import { hotField } from "../columns/column-table.ts";

// Converts the rows of an export to Parquet in an engine of its own: large rows take no memory from queries, and all of the
// memory is returned at the end.

const MEBIBYTE = 2 ** 20;
/** The reader's buffers, twice, and a row group. Rows of a megabyte take 134 MB. */
const MEMORY_BYTES = 192 * MEBIBYTE;
/** The reader's buffers take at least 32 MiB, and twice the size of a row. */
const ROW_BYTES_MIN = 16 * MEBIBYTE;
/** Copies of a row past that size: in buffers, in vectors, in the row group. */
const ROW_COPIES = 8;

/** Rejects with the signal's reason when it aborts. */
export async function writeParquet(
  { from, to, columns, rowBytesMax }: ParquetTask,
  scratch: string,
  signal: AbortSignal,
): Promise<void> {
  signal.throwIfAborted();
  const rowBytes = Math.max(ROW_BYTES_MIN, rowBytesMax);
  const instance = await DuckDBInstance.create(":memory:", {
    memory_limit: `${MEMORY_BYTES + ROW_COPIES * (rowBytes - ROW_BYTES_MIN)} bytes`,
    // Each further thread would have buffers of its own.
    threads: "1",
    temp_directory: scratch,
    autoinstall_known_extensions: "false",
    autoload_known_extensions: "false",
    // A byte limit for row groups requires it.
    preserve_insertion_order: "false",
  });
  try {
    const connection = await instance.connect();
    const leave = interruptOn(signal, connection);
    const quoted = (text: string) => `'${text.replaceAll("'", "''")}'`;
    const typeOf = (name: string) => (hotField(name)?.type === "number" ? "DOUBLE" : "VARCHAR");
    const types = columns.map((name) => `${quoted(name)}: '${typeOf(name)}'`).join(", ");
    try {
      // An abort while the engine opened had nothing to interrupt.
      signal.throwIfAborted();
      await connection.run(
        `COPY (SELECT * FROM read_json(${quoted(from)}, format = 'newline_delimited', columns = {${types}}, maximum_object_size = ${rowBytes}))
       TO ${quoted(to)} (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 20480, ROW_GROUP_SIZE_BYTES '8MiB')`,
      );
      signal.throwIfAborted();
    } catch (error) {
      throw signal.aborted ? signal.reason : error;
    } finally {
      leave();
      connection.closeSync();
    }
  } finally {
    instance.closeSync();
  }
}
