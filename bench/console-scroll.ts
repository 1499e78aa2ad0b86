import { alertsFolder } from "./alerts.ts";
import type { Bench } from "./bench.ts";
import { drawn, settled, withConsole, type BenchPage, type PageMemory } from "./console-page.ts";
import { ms, spreadOf, type Measurement } from "./figures.ts";

// Scrolls the console's lists by cursor, down and on: the memory of the page must not depend on how many rows it has passed.

const EVENTS_MAX = 1_000_000;
const ALERTS_MAX = 100_000;
/** Rows after which memory is compared with the end: by then everything is loaded and warm. */
const WARM_ROWS = 5000;
const SAMPLES = 10;
const RATIO_MAX = 1.5;

interface ListOptions {
  readonly name: string;
  readonly path: string;
  /** The role of the box that scrolls. */
  readonly role: "table" | "grid";
  /** A part of the address of each answer with a page of rows. */
  readonly answers: RegExp;
  readonly rowsPerPage: number;
  readonly rowsMax: number;
}

export async function consoleScroll({ dataset }: Bench): Promise<readonly Measurement[]> {
  const rowsMax = Math.min(EVENTS_MAX, dataset.events);
  const range = `from=${new Date(dataset.fromMs).toISOString()}&to=${new Date(dataset.toMs).toISOString()}`;
  return [
    await withConsole(dataset.folder, (page) =>
      scroll(page, {
        name: "events",
        path: `/events?${range}`,
        role: "table",
        answers: /\/v1\/events\/search$/,
        rowsPerPage: 200,
        rowsMax,
      }),
    ),
    await withConsole(await alertsFolder(), (page) =>
      scroll(page, {
        name: "alerts",
        path: "/alerts?group=none&sort=created_at&range=120d&time=created",
        role: "grid",
        answers: /\/v1\/alerts\?.*limit=100\b/,
        rowsPerPage: 100,
        rowsMax: ALERTS_MAX,
      }),
    ),
  ];
}

async function scroll(bench: BenchPage, options: ListOptions): Promise<Measurement> {
  const { page } = bench;
  const box = page.getByRole(options.role);
  await bench.open(options.path);
  await box.getByRole("row").nth(5).waitFor();
  await settled(page);
  // From here on, the list alone asks.
  let pages = 1;
  page.on("response", (response) => {
    if (options.answers.test(response.url())) pages++;
  });
  const took: number[] = [];
  const samples: Sample[] = [];
  let nextSample = WARM_ROWS;
  for (let rows = 0; rows < options.rowsMax;) {
    const before = pages;
    const startedAt = performance.now();
    const answered = page.waitForResponse((response) => options.answers.test(response.url()));
    await box.evaluate((element) => {
      element.scrollTop = element.scrollHeight;
    });
    await answered;
    await drawn(page);
    took.push((performance.now() - startedAt) / (pages - before));
    rows = pages * options.rowsPerPage;
    if (rows < nextSample && rows < options.rowsMax) continue;
    const sample = { rows, ...(await bench.memory()) };
    samples.push(sample);
    process.stderr.write(`${options.name}: ${rows} rows, ${megabytes(sample.heapBytes)}, ${sample.nodes} nodes\n`);
    nextSample = rows + Math.ceil((options.rowsMax - WARM_ROWS) / SAMPLES);
  }
  const [first, last] = [samples[0]!, samples.at(-1)!];
  const most = Math.max(...samples.map(({ heapBytes }) => heapBytes));
  const ratio = most / first.heapBytes;
  const step = spreadOf(took);
  return {
    name: `scrolling ${last.rows.toLocaleString("en")} ${options.name} in the console: memory of the page`,
    result: `at most ${megabytes(most)}; ${last.nodes} nodes; a page of rows p50 ${ms(step.p50)}, p95 ${ms(step.p95)}`,
    baseline: `${megabytes(first.heapBytes)}; ${first.nodes} nodes after ${first.rows.toLocaleString("en")} rows`,
    ratio,
    target: `at most ${RATIO_MAX}`,
    met: ratio <= RATIO_MAX,
    values: { ...step, rows: last.rows, firstBytes: first.heapBytes, mostBytes: most, nodes: last.nodes },
  };
}

interface Sample extends PageMemory {
  readonly rows: number;
}

const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(1)} MB`;
