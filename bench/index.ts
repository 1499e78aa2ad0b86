import { rm } from "node:fs/promises";
import { parseArgs } from "node:util";
import { aggregate } from "./aggregate.ts";
import { aggregateField } from "./aggregate-field.ts";
import { alertColumns } from "./alert-columns.ts";
import { alertSearch } from "./alert-search.ts";
import { alertLatency } from "./alert-latency.ts";
import { alerts } from "./alerts.ts";
import { openBench, type Bench, type Benchmark } from "./bench.ts";
import { cluster } from "./cluster.ts";
import type { ClusterSizes } from "./cluster-engines.ts";
import { collect } from "./collect.ts";
import { compression } from "./compression.ts";
import { consoleHistogram } from "./console-histogram.ts";
import { consoleScroll } from "./console-scroll.ts";
import { cursor } from "./cursor.ts";
import { prepareDataset } from "./dataset.ts";
import { detectGroups } from "./detect-groups.ts";
import { detectIngest } from "./detect-ingest.ts";
import { detectRegex } from "./detect-regex.ts";
import { detectRules } from "./detect-rules.ts";
import { entities } from "./entities.ts";
import { exportCsv } from "./export.ts";
import { readResults, saveMeasurements, showTable, type Measurement } from "./figures.ts";
import { flowsAggregate } from "./flows-aggregate.ts";
import { flowsBySize } from "./flows-by-size.ts";
import { flowsDecode } from "./flows-decode.ts";
import { flowsQuery } from "./flows-query.ts";
import { geo } from "./geo.ts";
import { ingest } from "./ingest.ts";
import { list } from "./list.ts";
import { memory } from "./memory.ts";
import { notify } from "./notify.ts";
import { parse } from "./parse.ts";
import { readers } from "./readers.ts";
import { reportMarkdown } from "./report.ts";
import { simulate } from "./simulate.ts";
import { stream } from "./stream.ts";
import { submit } from "./submit.ts";
import { text } from "./text.ts";

// `npm run bench` runs all benchmarks, `npm run bench -- list text` only these two.

const DATASET_BENCHMARKS: Record<string, Benchmark> = {
  memory,
  list,
  cursor,
  text,
  aggregate,
  "aggregate-field": aggregateField,
  export: exportCsv,
  ingest,
  submit,
  readers,
  "detect-ingest": detectIngest,
  "detect-rules": detectRules,
  "detect-groups": detectGroups,
  "detect-regex": detectRegex,
  "alert-latency": alertLatency,
  stream,
  simulate,
  alerts,
  "console-scroll": consoleScroll,
  "console-histogram": consoleHistogram,
};

/** Benchmarks with their own data. */
const OTHER_BENCHMARKS: Record<string, (sizes: Partial<ClusterSizes>) => Promise<readonly Measurement[]>> = {
  collect,
  "flows-decode": flowsDecode,
  "flows-aggregate": flowsAggregate,
  "flows-query": flowsQuery,
  "flows-by-size": flowsBySize,
  notify,
  geo,
  parse,
  compression,
  "alert-columns": alertColumns,
  entities,
  "alert-search": alertSearch,
  cluster,
};

const NAMES = [...Object.keys(DATASET_BENCHMARKS), ...Object.keys(OTHER_BENCHMARKS)];

const EVENTS_DEFAULT = 5_000_000;
const EXIT_WRONG_USE = 2;

const usage = `npm run bench -- [--events N] [--flows N] [benchmark ...]
benchmarks: ${NAMES.join(", ")}; default: all
--events N: number of events over 7 days; default ${EVENTS_DEFAULT}; the dataset is built once and kept in bench/.data
--flows N: number of flows of cluster, whose defaults are a million events and five million flows
--report: print the last results as Markdown without measuring\n`;

async function run(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      events: { type: "string" },
      flows: { type: "string" },
      report: { type: "boolean" },
      help: { type: "boolean", short: "h" },
    },
  });
  const events = Number(values.events ?? EVENTS_DEFAULT);
  const flows = values.flows === undefined ? undefined : Number(values.flows);
  const isSize = (size: number) => Number.isSafeInteger(size) && size >= 1;
  const unknown = positionals.filter((name) => !NAMES.includes(name));
  if (values.help || unknown.length > 0 || !isSize(events) || !isSize(flows ?? 1)) {
    process.stdout.write(usage);
    return values.help ? 0 : EXIT_WRONG_USE;
  }
  if (values.report) {
    const results = readResults();
    process.stdout.write(results ? reportMarkdown(results) : "no results yet; run npm run bench first\n");
    return 0;
  }
  const sizes = { ...(flows !== undefined && { flows }), ...(values.events !== undefined && { events }) };
  const names = positionals.length > 0 ? positionals : NAMES;
  let bench: Bench | undefined;
  for (const name of names) {
    process.stderr.write(`${name} ...\n`);
    const measurements = await (OTHER_BENCHMARKS[name]?.(sizes) ??
      DATASET_BENCHMARKS[name]!((bench ??= openBench(await prepareDataset(events)))));
    saveMeasurements(events, name, measurements);
    process.stdout.write(`${showTable(measurements)}\n\n`);
  }
  if (bench) await rm(`${bench.dataset.folder}-copy`, { recursive: true, force: true });
  return 0;
}

process.exitCode = await run();
