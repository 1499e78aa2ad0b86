import { Icon } from "../../../components/ui/icons.tsx";
import type { Alert } from "../../../data/client.ts";

const STEPS = ["open", "acknowledged", "resolved"] as const;

/** How far the alert has come. */
export function StatusSteps({ status }: { status: Alert["status"] }) {
  const current = STEPS.indexOf(status);
  return (
    <span className="inline-flex items-center gap-1.5 rounded-full border border-line px-2 py-0.5 text-2xs">
      <span className="sr-only">Status: {status}</span>
      {STEPS.map((step, index) => (
        <span
          key={step}
          aria-hidden
          className={`inline-flex items-center gap-1 ${index === current ? "font-semibold text-ink" : "text-ink3"}`}
        >
          {index > 0 && <span className="mr-0.5 h-px w-2.5 bg-line2" />}
          {index < current ? (
            <Icon name="check" size={11} className="text-good" />
          ) : (
            <span
              className={`size-1.5 rounded-full ${index === current ? (step === "resolved" ? "bg-good" : "bg-accent") : "bg-line2"}`}
            />
          )}
          {index === current && step}
        </span>
      ))}
    </span>
  );
}
