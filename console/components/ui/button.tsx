import type { ButtonHTMLAttributes, ReactNode } from "react";
import { Icon, type IconName } from "./icons.tsx";

interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  readonly children: ReactNode;
  readonly look?: "primary" | "plain" | "quiet" | "danger";
  readonly icon?: IconName;
  /** The key that does the same. */
  readonly hint?: string;
}

const LOOKS = {
  primary: "on-accent bg-accent text-accent-ink hover:brightness-110",
  plain: "border border-line2/70 bg-raised text-ink hover:bg-hover",
  quiet: "text-ink2 hover:bg-hover hover:text-ink",
  danger: "border border-critical/60 bg-raised text-critical hover:bg-hover",
} as const;

export function Button({ children, look = "plain", icon, hint, className = "", ...rest }: ButtonProps) {
  return (
    <button
      type="button"
      {...rest}
      className={`inline-flex h-8 shrink-0 items-center gap-2 rounded-md px-3 text-sm font-medium whitespace-nowrap transition-colors ${LOOKS[look]} ${className}`}
    >
      {icon !== undefined && <Icon name={icon} size={14} />}
      {children}
      {hint !== undefined && (
        <kbd aria-hidden className="max-md:hidden">
          {hint}
        </kbd>
      )}
    </button>
  );
}

interface IconButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  readonly icon: IconName;
  /** What it does, for the tooltip and for screen readers. */
  readonly label: string;
  readonly size?: number;
  readonly bordered?: boolean;
}

export function IconButton({ icon, label, size = 15, bordered = false, className = "", ...rest }: IconButtonProps) {
  return (
    <button
      type="button"
      aria-label={label}
      title={label}
      {...rest}
      className={`grid size-8 shrink-0 place-items-center rounded-md text-ink3 hover:bg-hover hover:text-ink ${bordered ? "border border-line" : ""} ${className}`}
    >
      <Icon name={icon} size={size} />
    </button>
  );
}
