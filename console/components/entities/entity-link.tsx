import { Link } from "@tanstack/react-router";
import type { Entity } from "./entity.ts";

/** A thing in a sentence. Addresses, devices and numbers are set in the fixed-width type. */
export function EntityLink({ kind, value }: Entity) {
  const isMono = kind === "address" || kind === "device" || kind === "phone";
  return (
    <Link
      to="/entity/$kind/$value"
      params={{ kind, value }}
      search={({ range, from, to }: Record<string, unknown>) => ({ range, from, to }) as never}
      onClick={(event) => event.stopPropagation()}
      className={`${isMono ? "mono" : ""} text-ink underline decoration-line2 decoration-dotted underline-offset-3 hover:decoration-accent hover:decoration-solid`}
    >
      {value}
    </Link>
  );
}
