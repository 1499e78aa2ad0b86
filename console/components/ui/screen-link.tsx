import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";

interface ScreenLinkProps {
  readonly to: "/alerts" | "/axis" | "/events" | "/flows" | "/rules" | "/sources" | "/settings";
  /** Added to the range, which is kept. */
  readonly search?: Readonly<Record<string, string | undefined>>;
  readonly className?: string;
  readonly children: ReactNode;
}

/** A number or name that leads to the list behind it. */
export function ScreenLink({ to, search, className = "", children }: ScreenLinkProps) {
  return (
    <Link
      to={to}
      search={({ range, from, to: until }: Record<string, unknown>) => ({ range, from, to: until, ...search }) as never}
      className={className}
    >
      {children}
    </Link>
  );
}
