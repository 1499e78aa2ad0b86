import type { Suggestion } from "./suggestions.ts";

interface SuggestionListProps {
  readonly id: string;
  readonly suggestions: readonly Suggestion[];
  readonly highlighted: number;
  readonly text: string;
  readonly onChoose: (suggestion: Suggestion) => void;
}

const EXAMPLES = ["user=admin", 'door!="Loading dock"', "dst_port>1024", "src_ip=10.0.0.0/8", "host=laptop-*"];

export function SuggestionList({ id, suggestions, highlighted, text, onChoose }: SuggestionListProps) {
  return (
    <div className="absolute inset-x-0 top-full z-30 mt-1 max-w-2xl overflow-hidden rounded-lg border border-line2/70 bg-panel shadow-(--shadow)">
      <ul id={`${id}-list`} role="listbox" aria-label="Suggestions" className={suggestions.length > 0 ? "p-1" : ""}>
        {suggestions.map((suggestion, index) => (
          <li
            key={suggestion.text}
            id={`${id}-${index}`}
            role="option"
            aria-selected={index === highlighted}
            // Before the input loses the focus, which closes the list.
            onPointerDown={(event) => {
              event.preventDefault();
              onChoose(suggestion);
            }}
            className={`flex h-8 cursor-pointer items-center gap-3 rounded-md px-2.5 text-sm ${index === highlighted ? "bg-accent-soft" : "hover:bg-hover"}`}
          >
            <span className={`truncate ${suggestion.isComplete ? "" : "mono"}`}>{suggestion.label}</span>
            <span className="ml-auto truncate text-xs text-ink3">{suggestion.detail}</span>
          </li>
        ))}
      </ul>
      <p className="border-t border-line px-3.5 py-2 text-2xs text-ink3">
        {text === "" ? (
          <>
            Try{" "}
            {EXAMPLES.map((example) => (
              <code key={example} className="mono mr-2 text-ink2">
                {example}
              </code>
            ))}
            Anything else is a word: each one must begin a word in some field of the event.
          </>
        ) : (
          <>
            <kbd>Enter</kbd> to filter · <kbd>↓</kbd> to choose · operators = != ~ (contains) !~ &gt; &lt;
          </>
        )}
      </p>
    </div>
  );
}
