import { Sheet } from "../../components/ui/sheet.tsx";
import { Check } from "../../components/ui/fields.tsx";
import { setPreference, usePreferences } from "../../data/preferences.ts";
import { keyLabel, KEYS, type KeyBinding } from "../keys.ts";

const HEADINGS: Record<keyof typeof KEYS, string> = {
  everywhere: "Everywhere",
  list: "In a list",
  alert: "On an alert",
  resolving: "While resolving an alert",
  rules: "On rules",
  axis: "On the time axis",
  events: "On events",
};

export default function KeySheet({ onClose }: { onClose: () => void }) {
  const { shortcuts } = usePreferences();
  return (
    <Sheet
      open
      onClose={onClose}
      title="All keys"
      width="wide"
      isForReading
      footer={
        <Check
          label="Use single-letter keys"
          checked={shortcuts === "on"}
          onChange={(on) => setPreference("shortcuts", on ? "on" : "off")}
        />
      }
    >
      <div className="columns-2 gap-8 max-md:columns-1">
        {Object.entries(KEYS).map(([scope, bindings]) => (
          <section key={scope} className="mb-5 break-inside-avoid">
            <h3 className="mb-1.5 text-xs font-semibold">{HEADINGS[scope as keyof typeof KEYS]}</h3>
            <dl className="space-y-1">
              {Object.values(bindings as Record<string, KeyBinding>).map(({ keys, does }) => (
                <div key={does} className="flex items-center gap-3 text-sm text-ink2">
                  <dt className="flex w-24 shrink-0 gap-1">
                    {keys
                      .filter((key) => !key.startsWith("Meta+"))
                      .map((key) => (
                        <kbd key={key}>{keyLabel(key)}</kbd>
                      ))}
                  </dt>
                  <dd>{does}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
    </Sheet>
  );
}
