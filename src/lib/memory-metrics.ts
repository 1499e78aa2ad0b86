import { Gauge, type Registry } from "prom-client";
import { threadHeaps } from "./thread.ts";

// Memory per thread: the process metrics report only the total.

export function registerThreadMetrics(registry: Registry): void {
  new Gauge({
    name: "tocsin_thread_heap_bytes",
    help: "JavaScript heap of each thread except the main one: used, total and external bytes",
    labelNames: ["thread", "kind"],
    registers: [registry],
    async collect() {
      const heaps = await threadHeaps();
      this.reset();
      for (const { thread, ...kinds } of heaps) {
        for (const [kind, bytes] of Object.entries(kinds)) this.inc({ thread, kind }, bytes);
      }
    },
  });
}
