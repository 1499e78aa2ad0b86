import { useQuery } from "@tanstack/react-query";
import { SectionHeading } from "../../components/ui/heading.tsx";
import { ScreenLink } from "../../components/ui/screen-link.tsx";
import { Empty, Failure, Skeleton } from "../../components/ui/states.tsx";
import { noisyRulesQuery, type TimeSpan } from "../../data/home.ts";
import { exact, percent } from "../../text/numbers.ts";

export function NoisyRules({ span }: { span: TimeSpan }) {
  const rules = useQuery(noisyRulesQuery(span));
  const most = Math.max(1, ...(rules.data ?? []).map(({ alerts }) => alerts));
  return (
    <>
      <SectionHeading>Noisiest rules</SectionHeading>
      <div aria-busy={rules.isPlaceholderData} className={`min-h-56 ${rules.isPlaceholderData ? "opacity-60" : ""}`}>
        {rules.error !== null && rules.data === undefined ? (
          <Failure error={rules.error} onRetry={() => void rules.refetch()} />
        ) : rules.data === undefined ? (
          <Skeleton className="h-56" />
        ) : rules.data.length === 0 ? (
          <Empty title="No rule has made an alert in this time" />
        ) : (
          <table className="w-full text-sm">
            <thead className="text-left text-2xs text-ink3">
              <tr>
                <th className="w-1/2 py-1 font-medium">Rule</th>
                <th className="w-1/3 py-1 font-medium">Alerts</th>
                <th className="py-1 text-right font-medium">False</th>
              </tr>
            </thead>
            <tbody>
              {rules.data.map(({ name, alerts, falseShare }) => (
                <tr key={name} className="border-t border-line">
                  <td className="max-w-0 truncate py-2 pr-3">
                    <ScreenLink to="/rules" search={{ rule: name }} className="mono text-xs hover:underline">
                      {name}
                    </ScreenLink>
                  </td>
                  <td className="py-2">
                    <ScreenLink
                      to="/alerts"
                      search={{ view: "everything", rule_name: name }}
                      className="flex items-center gap-2 hover:underline"
                    >
                      <span aria-hidden className="h-2 flex-1 rounded-full bg-hover">
                        <span
                          className="block h-full rounded-full bg-accent"
                          style={{ width: `${(alerts / most) * 100}%` }}
                        />
                      </span>
                      <span className="w-10 text-right text-ink2">{exact(alerts)}</span>
                    </ScreenLink>
                  </td>
                  <td className="py-2 text-right text-ink2">{falseShare === null ? "–" : percent(falseShare)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </div>
    </>
  );
}
