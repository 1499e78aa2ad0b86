import { Counter, Gauge, Histogram, type Registry } from "prom-client";

export type JournalMetrics = ReturnType<typeof journalMetrics>;

export function journalMetrics(registry: Registry, journal: { readonly queuedEvents: number; count(): number }) {
  const registers = [registry];
  new Gauge({
    name: "tocsin_intake_queue_events",
    help: "Events waiting to be stored",
    registers,
    collect() {
      this.set(journal.queuedEvents);
    },
  });
  new Gauge({
    name: "tocsin_events_rows",
    help: "Events in the store",
    registers,
    collect() {
      this.set(journal.count());
    },
  });
  return {
    refused: new Counter({
      name: "tocsin_store_refused_events_total",
      help: "Events that the store refused, by reason",
      labelNames: ["reason"],
      registers,
    }),
    truncated: new Counter({
      name: "tocsin_events_words_truncated_total",
      help: "Events with more words than the index takes",
      registers,
    }),
    checkpointFailures: new Counter({
      name: "tocsin_journal_checkpoint_failures_total",
      help: "Failed checkpoints of a write-ahead log",
      registers,
    }),
    groupSize: new Histogram({
      name: "tocsin_commit_group_events",
      help: "Events per commit",
      buckets: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000],
      registers,
    }),
    groupSeconds: new Histogram({
      name: "tocsin_commit_group_seconds",
      help: "Duration of a commit",
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1],
      registers,
    }),
  };
}
