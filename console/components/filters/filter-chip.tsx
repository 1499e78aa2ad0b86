import { Icon } from "../ui/icons.tsx";

interface FilterChipProps {
  readonly field: string;
  readonly value: string;
  /** The condition excludes. */
  readonly isOut?: boolean;
  readonly onRemove: () => void;
  /** Puts the condition back to where it was typed. */
  readonly onEdit?: () => void;
}

/** One condition of a filter. */
export function FilterChip({ field, value, isOut = false, onRemove, onEdit }: FilterChipProps) {
  const words = (
    <>
      <span className="text-ink3">{field}</span>
      <span
        className={`max-w-60 truncate font-medium ${isOut ? "line-through decoration-ink3" : ""}`}
        title={value.length > 30 ? value : undefined}
      >
        {value}
      </span>
    </>
  );
  return (
    <span className="inline-flex h-6 max-w-full shrink-0 items-center gap-1 rounded bg-hover pr-0.5 pl-2 text-xs whitespace-nowrap">
      {onEdit === undefined ? (
        words
      ) : (
        <button
          type="button"
          title="Change"
          onClick={onEdit}
          className="inline-flex h-6 min-w-0 items-center gap-1 hover:text-accent"
        >
          {words}
        </button>
      )}
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
