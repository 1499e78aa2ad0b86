import { SectionHeading } from "../../../components/ui/heading.tsx";
import { Icon } from "../../../components/ui/icons.tsx";
import type { AlertDetail } from "../../../data/client.ts";

const POINTS_FULL = 50;
const REASON = /^([+-])(\d+): (.*)$/s;

/** How the score came about, by the points of each reason. A model's reasons have no points. */
export function ScoreReasons({ analysis }: { analysis: NonNullable<AlertDetail["ai_analysis"]> }) {
  const by = analysis.provider === "builtin" ? "built-in scorer" : (analysis.model ?? analysis.provider);
  return (
    <section>
      <SectionHeading
        right={
          <span className="inline-flex items-center gap-1 text-2xs text-ink3">
            <Icon name="bot" size={12} /> {by}
          </span>
        }
      >
        How the score came about
      </SectionHeading>
      {analysis.provider !== "builtin" && <p className="mb-2 text-sm text-ink2">{analysis.summary}</p>}
      <ul className="space-y-1.5">
        {analysis.reasoning.map((line) => {
          const [, sign, points, words] = REASON.exec(line) ?? [];
          return points === undefined ? (
            <li key={line} className="text-xs text-ink2">
              {line}
            </li>
          ) : (
            <li key={line} className="grid grid-cols-[34px_84px_minmax(0,1fr)] items-center gap-2 text-xs text-ink2">
              <span className="mono text-right font-medium text-ink">
                {sign}
                {points}
              </span>
              <span aria-hidden className="h-1.5 overflow-hidden rounded-full bg-hover">
                <span
                  className="block h-full rounded-full bg-accent"
                  style={{ width: `${Math.min(100, (Number(points) / POINTS_FULL) * 100)}%` }}
                />
              </span>
              {words}
            </li>
          );
        })}
      </ul>
      {analysis.provider_error !== undefined && (
        <p className="mt-1.5 text-2xs text-ink3">The model did not answer: {analysis.provider_error}</p>
      )}
    </section>
  );
}
