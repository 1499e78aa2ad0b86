import { Counter, Gauge, type Registry } from "prom-client";

export interface StatusMetrics<Status> {
  /** Reads the status. All metrics of one scrape share a call. Undefined while there is none. */
  read(): Promise<Status> | undefined;
  total(name: string, help: string, value: (status: Status) => number): void;
  level(name: string, help: string, value: (status: Status) => number): void;
}

/** Registers counters and gauges whose values come from a status that is read at each scrape. */
export function statusMetrics<Status>(
  registry: Registry,
  getStatus: () => Promise<Status> | undefined,
): StatusMetrics<Status> {
  let pending: Promise<Status> | undefined;
  const read = () => (pending ??= getStatus()?.finally(() => (pending = undefined)));
  return {
    read,
    total: (name, help, value) =>
      registry.registerMetric(
        new Counter({
          name,
          help,
          registers: [],
          async collect() {
            const status = await read();
            this.reset();
            if (status) this.inc(value(status));
          },
        }),
      ),
    level: (name, help, value) =>
      registry.registerMetric(
        new Gauge({
          name,
          help,
          registers: [],
          async collect() {
            const status = await read();
            if (status) this.set(value(status));
          },
        }),
      ),
  };
}
