interface SwitchProps {
  /** What it switches. */
  readonly label: string;
  readonly isOn: boolean;
  readonly onChange: (isOn: boolean) => void;
  readonly disabledBecause?: string | undefined;
  readonly isPending?: boolean;
}

/** On or off, at once. */
export function Switch({ label, isOn, onChange, disabledBecause, isPending = false }: SwitchProps) {
  const isDisabled = disabledBecause !== undefined;
  return (
    <button
      type="button"
      role="switch"
      aria-checked={isOn}
      aria-label={label}
      aria-disabled={isDisabled || undefined}
      aria-busy={isPending || undefined}
      title={disabledBecause ?? `${label}: ${isOn ? "on" : "off"}`}
      onClick={() => {
        if (!isDisabled && !isPending) onChange(!isOn);
      }}
      className={`grid h-6 w-9 shrink-0 place-items-center ${isDisabled ? "cursor-not-allowed opacity-50" : ""}`}
    >
      <span
        aria-hidden
        className={`relative block h-[18px] w-8 rounded-full border transition-colors ${isOn ? "border-accent bg-accent" : "border-ink3 bg-app"}`}
      >
        <span
          className={`absolute top-[2px] size-3 rounded-full transition-[left] motion-reduce:transition-none ${isOn ? "left-[16px] bg-accent-ink" : "left-[2px] bg-ink3"}`}
        />
      </span>
    </button>
  );
}
