import { useId, type ComponentProps, type ReactNode } from "react";

// Inputs with a visible label. A fault stands under the field that it is about.

const BOX =
  "w-full rounded-md border border-line2 bg-app px-2.5 text-sm text-ink focus:border-accent focus:outline-2 focus:outline-accent";

interface FieldProps {
  readonly label: string;
  readonly hint?: ReactNode;
  readonly fault?: string | undefined;
  /** Only for screen readers, where the place of the field says what it is. */
  readonly isLabelHidden?: boolean;
}

function Labelled({
  id,
  label,
  hint,
  fault,
  isLabelHidden = false,
  children,
}: FieldProps & { readonly id: string; readonly children: ReactNode }) {
  return (
    <div className="space-y-1">
      <label htmlFor={id} className={isLabelHidden ? "sr-only" : "block text-xs font-medium text-ink2"}>
        {label}
      </label>
      {children}
      {hint !== undefined && fault === undefined && (
        <p id={`${id}-hint`} className="text-2xs text-ink3">
          {hint}
        </p>
      )}
      {fault !== undefined && (
        <p id={`${id}-fault`} role="alert" className="text-xs text-critical">
          {fault}
        </p>
      )}
    </div>
  );
}

const described = (id: string, { hint, fault }: FieldProps) => ({
  id,
  ...(fault !== undefined && { "aria-invalid": true }),
  ...(fault !== undefined
    ? { "aria-describedby": `${id}-fault` }
    : hint !== undefined && { "aria-describedby": `${id}-hint` }),
});

export function TextField({
  label,
  hint,
  fault,
  isLabelHidden = false,
  className = "",
  ...rest
}: FieldProps & ComponentProps<"input">) {
  const id = useId();
  return (
    <Labelled id={id} label={label} hint={hint} fault={fault} isLabelHidden={isLabelHidden}>
      <input {...described(id, { label, hint, fault })} {...rest} className={`${BOX} h-8 ${className}`} />
    </Labelled>
  );
}

export function TextArea({
  label,
  hint,
  fault,
  isLabelHidden = false,
  className = "",
  ...rest
}: FieldProps & ComponentProps<"textarea">) {
  const id = useId();
  return (
    <Labelled id={id} label={label} hint={hint} fault={fault} isLabelHidden={isLabelHidden}>
      <textarea
        {...described(id, { label, hint, fault })}
        rows={3}
        {...rest}
        className={`${BOX} py-1.5 ${className}`}
      />
    </Labelled>
  );
}

interface SelectProps extends FieldProps {
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly options: readonly { readonly value: string; readonly label: string }[];
}

/** The browser's own: it works with every keyboard, reader and phone. */
export function SelectField({ label, hint, fault, isLabelHidden = false, value, onChange, options }: SelectProps) {
  const id = useId();
  return (
    <Labelled id={id} label={label} hint={hint} fault={fault} isLabelHidden={isLabelHidden}>
      <select
        {...described(id, { label, hint, fault })}
        value={value}
        onChange={({ target }) => onChange(target.value)}
        className={`${BOX} h-8`}
      >
        {options.map((option) => (
          <option key={option.value} value={option.value}>
            {option.label}
          </option>
        ))}
      </select>
    </Labelled>
  );
}

interface CheckProps {
  readonly label: ReactNode;
  readonly checked: boolean;
  readonly onChange: (checked: boolean) => void;
  readonly disabled?: boolean;
}

export function Check({ label, checked, onChange, disabled = false }: CheckProps) {
  return (
    <label className="inline-flex min-h-6 items-center gap-2 text-sm">
      <input
        type="checkbox"
        checked={checked}
        disabled={disabled}
        onChange={({ target }) => onChange(target.checked)}
        className="size-4 shrink-0 accent-(--accent)"
      />
      {label}
    </label>
  );
}
