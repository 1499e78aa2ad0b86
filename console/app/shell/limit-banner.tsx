import { useEffect, useState } from "react";
import { Icon } from "../../components/ui/icons.tsx";
import { useLimits } from "../../data/limits.ts";

/** While the key's limit is used up: what waits, and for how long. */
export function LimitBanner() {
  const { pausedUntilMs, limit } = useLimits();
  return pausedUntilMs === null ? null : <Countdown untilMs={pausedUntilMs} limit={limit} />;
}

function Countdown({ untilMs, limit }: { untilMs: number; limit: number | null }) {
  const [nowMs, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  const seconds = Math.max(1, Math.ceil((untilMs - nowMs) / 1000));
  return (
    <p role="status" className="flex items-center gap-2 border-b border-line bg-raised px-4 py-2 text-sm">
      <Icon name="clock-3" size={15} className="text-ink3" />
      <span>
        Your key's limit{limit !== null && ` of ${limit.toLocaleString("en")} requests`} is used up. Going on in{" "}
        {seconds} s; nothing that you did is lost.
      </span>
    </p>
  );
}
