import type { Entity } from "../../components/entities/entity.ts";
import { age } from "../../components/time/format.ts";
import { useNow } from "../../components/time/use-range.ts";
import { ScreenLink } from "../../components/ui/screen-link.tsx";
import { SeverityBars } from "../../components/ui/severity.tsx";
import { Empty } from "../../components/ui/states.tsx";
import type { EntityDetail } from "../../data/entities.ts";
import { exact } from "../../text/numbers.ts";
import { Part } from "./part.tsx";

const SHOWN_MAX = 6;

export function EntityAlerts({ entity, detail }: { entity: Entity; detail: EntityDetail | undefined }) {
  const nowMs = useNow();
  const alerts = detail?.alerts;
  const search = { view: "all", entity: `${entity.kind}:${entity.value}` };
  return (
    <Part
      title="Alerts"
      part="alerts"
      detail={detail}
      minHeight="min-h-56"
      right={
        alerts != null &&
        alerts.total > 0 && (
          <ScreenLink to="/alerts" search={search} className="text-xs font-medium text-accent hover:underline">
            All {exact(alerts.total)}
          </ScreenLink>
        )
      }
    >
      {alerts == null || alerts.total === 0 ? (
        <Empty title="No alert names it in this time" />
      ) : (
        <ul>
          {alerts.newest.slice(0, SHOWN_MAX).map((alert) => (
            <li key={alert.id} className="border-b border-line last:border-0">
              <ScreenLink
                to="/alerts"
                search={{ ...search, alert: alert.id }}
                className="flex items-center gap-3 rounded-md px-1 py-2 hover:bg-hover/60"
              >
                <SeverityBars severity={alert.severity} />
                <span className="min-w-0 flex-1 truncate text-sm">{alert.title}</span>
                <span className="text-xs text-ink3">{alert.status}</span>
                <span className="w-14 text-right text-xs whitespace-nowrap text-ink3">
                  {age(alert.created_at, nowMs)}
                </span>
              </ScreenLink>
            </li>
          ))}
        </ul>
      )}
    </Part>
  );
}
