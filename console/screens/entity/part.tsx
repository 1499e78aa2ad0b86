import type { ReactNode } from "react";
import { Panel, SectionHeading } from "../../components/ui/heading.tsx";
import { Skeleton } from "../../components/ui/states.tsx";
import type { EntityDetail } from "../../data/entities.ts";

type PartName = EntityDetail["unavailable"][number]["part"];

interface PartProps {
  readonly title: ReactNode;
  readonly right?: ReactNode;
  /** The part of the answer that it needs. */
  readonly part: PartName;
  readonly detail: EntityDetail | undefined;
  readonly className?: string;
  /** The height that it takes at least, also while it loads. */
  readonly minHeight: string;
  readonly children: ReactNode;
}

/** A panel of the page. It says why where the service could not answer its part. */
export function Part({ title, right, part, detail, className = "", minHeight, children }: PartProps) {
  const missing = detail?.unavailable.find((one) => one.part === part);
  return (
    <Panel className={`min-w-0 ${className}`}>
      <SectionHeading right={right}>{title}</SectionHeading>
      <div className={minHeight}>
        {detail === undefined ? (
          <Skeleton className={`${minHeight} h-full`} />
        ) : missing === undefined ? (
          children
        ) : (
          <p className="py-6 text-center text-sm text-ink2">{reasonText(missing)}</p>
        )}
      </div>
    </Panel>
  );
}

function reasonText({ part, reason, message }: EntityDetail["unavailable"][number]): string {
  switch (reason) {
    case "missing_scope":
      return "Your key may not see this: it lacks the scope alerts:read.";
    case "deadline":
      return `Counting the ${part === "seen" ? "days" : part} took too long. A shorter time may help.`;
    default:
      return `The service refused: ${message}.`;
  }
}
