import { Gauge, type Registry } from "prom-client";
import { threadHeaps } from "./thread.ts";

// The process reports its memory as one figure. These say which thread holds it.

export function registerThreadMetrics(registry: Registry): void {
  new Gauge({
    name: "tocsin_thread_heap_bytes",
    help: "JavaScript heap of each thread but the main one: in use, reserved for it, and external memory that it keeps alive",
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
