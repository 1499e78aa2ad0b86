import { useState, type ReactNode } from "react";
import { Icon } from "./icons.tsx";

const TOLD_MS = 1500;

/** Copies; on plain HTTP, where a page may not, it selects the text in a field for the reader to copy. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = document.createElement("textarea");
    field.value = text;
    field.className = "sr-only";
    document.body.append(field);
    field.select();
    // Deprecated, but the only way where the clipboard needs a secure context.
    const isCopied = document.execCommand("copy");
    field.remove();
    return isCopied;
  }
}

interface CopyButtonProps {
  readonly text: string;
  readonly label: string;
  readonly children?: ReactNode;
}

export function CopyButton({ text, label, children }: CopyButtonProps) {
  const [isCopied, setCopied] = useState(false);
  return (
    <button
      type="button"
      // What is seen belongs to the name: people say it to a computer that listens.
      aria-label={children === undefined ? label : undefined}
      title={label}
      onClick={() => {
        void copyText(text).then((copied) => {
          setCopied(copied);
          setTimeout(() => setCopied(false), TOLD_MS);
        });
      }}
      className="inline-flex h-7 items-center gap-1.5 rounded-md px-1.5 text-ink3 hover:bg-hover hover:text-ink"
    >
      {children}
      {children !== undefined && <span className="sr-only">{label}</span>}
      <Icon name={isCopied ? "check" : "copy"} size={13} />
      <span role="status" className="sr-only">
        {isCopied ? "Copied" : ""}
      </span>
    </button>
  );
}
