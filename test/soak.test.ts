import { expect, test } from "vitest";
import { partsOf, reportOf, robustSlope, verdictOf, type MemorySample } from "../bench/soak-report.ts";

const MB = 1e6;
/** An hour in samples of ten seconds. */
const soakOf = (own: (seconds: number) => number): MemorySample[] =>
  Array.from({ length: 360 }, (_, n) => ({
    seconds: n * 10,
    own: own(n * 10),
    resident: own(n * 10) + 100 * MB,
    parts: { "heap of the main thread": 50 * MB },
  }));

test("the slope is the median of all pairs: single peaks do not move it", () => {
  const points = Array.from({ length: 50 }, (_, x) => [x, x % 10 === 3 ? 1000 : 2 * x + 5] as const);
  expect(robustSlope(points)).toBeCloseTo(2, 1);
  expect(robustSlope([[1, 7]])).toBe(0);
});

test("memory that rises and then stays is flat, despite a sawtooth and peaks", () => {
  const warmUp = (seconds: number) => Math.min(1, seconds / 1200) * 100 * MB;
  const sawtooth = (seconds: number) => (seconds % 90) * 0.5 * MB;
  const peak = (seconds: number) => (seconds % 300 === 0 ? 200 * MB : 0);
  const flat = verdictOf(soakOf((seconds) => 400 * MB + warmUp(seconds) + sawtooth(seconds) + peak(seconds)));
  expect(flat).toMatchObject({ isFlat: true, text: expect.stringMatching(/^flat: .* \(20 min\)/) });
});

test("memory that rises by a megabyte a minute is still growing", () => {
  const leak = verdictOf(soakOf((seconds) => 400 * MB + (seconds / 60) * MB));
  expect(leak).toMatchObject({ isFlat: false, text: expect.stringMatching(/^STILL GROWING: \+20 MB/) });
});

test("collected garbage neither hides a leak nor looks like one", () => {
  // A heap that is collected after every 40 to 160 MB.
  const garbage = (seconds: number) => (seconds % 97) * (0.4 + ((seconds / 97) % 4) * 0.3) * MB;
  expect(verdictOf(soakOf((seconds) => 400 * MB + garbage(seconds)))).toMatchObject({ isFlat: true });
  expect(verdictOf(soakOf((seconds) => 400 * MB + garbage(seconds) + (seconds / 60) * MB))).toMatchObject({
    isFlat: false,
  });
});

test("an engine may fill its cache up to its limit, and no further", () => {
  const withEngine = (bytes: (seconds: number) => number) =>
    soakOf((seconds) => 400 * MB + bytes(seconds)).map((sample) => ({
      ...sample,
      parts: { ...sample.parts, "engine of columns": bytes(sample.seconds) },
    }));
  expect(verdictOf(withEngine((seconds) => (seconds / 60) * 5 * MB))).toMatchObject({ isFlat: true });
  expect(verdictOf(withEngine((seconds) => (seconds / 60) * 7 * MB))).toMatchObject({
    isFlat: false,
    text: expect.stringMatching(/^NOT BOUNDED: .*engine of columns at most 419 MB, ABOVE its limit of 384 MB/),
  });
});

test("memory is read from the metrics: heaps by thread, external memory as one, engines", () => {
  const metrics = `# TYPE nodejs_heap_size_total_bytes gauge
nodejs_heap_size_total_bytes 1000
nodejs_external_memory_bytes 10
tocsin_thread_heap_bytes{thread="journal-reader",kind="used"} 7
tocsin_thread_heap_bytes{thread="journal-reader",kind="total"} 20
tocsin_thread_heap_bytes{thread="journal-reader",kind="external"} 5
tocsin_engine_memory_bytes{engine="columns"} 3e+6
tocsin_other 1
`;
  expect(partsOf(metrics)).toEqual({
    "heap of the main thread": 1000,
    external: 15,
    "heap of journal-reader": 20,
    "engine of columns": 3_000_000,
  });
});

test("the report shows the course, a chart and the growth of each component", () => {
  const report = reportOf(soakOf((seconds) => 400 * MB + (seconds / 60) * MB));
  expect(report).toMatch(/^ *59\.8 min +560 MB +460 MB$/m);
  expect(report).toMatch(/^4\d\d MB ▁.*█ 4\d\d MB$/m);
  expect(report).toMatch(/^heap of the main thread +50 MB +50 MB +\+0 MB$/m);
  expect(report).toMatch(/^without file pages +410 MB +450 MB +\+40 MB$/m);
});
