import { Gauge, type Registry } from "prom-client";

const NAME = "tocsin_role_active";

/** Sets the gauge of a role. All roles share one metric. */
export function roleGauge(registry: Registry, role: string): (isActive: boolean) => void {
  const known = registry.getSingleMetric(NAME) as Gauge<"role"> | undefined;
  const gauge =
    known ??
    new Gauge({
      name: NAME,
      help: "1 if this node does the work of the role, which one node does at a time",
      labelNames: ["role"],
      registers: [registry],
    });
  return (isActive) => gauge.set({ role }, isActive ? 1 : 0);
}
