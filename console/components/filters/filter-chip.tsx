import { Icon } from "../ui/icons.tsx";

interface FilterChipProps {
  readonly field: string;
  readonly value: string;
  readonly onRemove: () => void;
}

/** One condition of a filter. */
export function FilterChip({ field, value, onRemove }: FilterChipProps) {
  return (
    <span className="inline-flex h-6 max-w-full shrink-0 items-center gap-1 rounded bg-hover pr-0.5 pl-2 text-xs whitespace-nowrap">
      <span className="text-ink3">{field}</span>
      <span className="max-w-60 truncate font-medium">{value}</span>
      <button
        type="button"
        aria-label={`Remove ${field} ${value}`}
        onClick={onRemove}
        className="grid size-6 place-items-center rounded text-ink3 hover:text-ink"
      >
        <Icon name="x" size={11} />
      </button>
    </span>
  );
}
