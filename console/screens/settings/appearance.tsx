import { zoneName, zoneOf } from "../../components/time/zone.ts";
import { Panel } from "../../components/ui/heading.tsx";
import { SelectField } from "../../components/ui/fields.tsx";
import { setPreference, usePreferences, type Preferences } from "../../data/preferences.ts";

/** What this browser remembers. */
export function Appearance() {
  const preferences = usePreferences();
  const choose =
    <Name extends keyof Preferences>(name: Name) =>
    (value: string) =>
      setPreference(name, value as Preferences[Name]);
  return (
    <Panel className="grid grid-cols-2 gap-4 max-md:grid-cols-1">
      <SelectField
        label="Theme"
        value={preferences.theme}
        onChange={choose("theme")}
        options={[
          { value: "dark", label: "Dark" },
          { value: "light", label: "Light" },
        ]}
      />
      <SelectField
        label="Rows"
        value={preferences.density}
        onChange={choose("density")}
        options={[
          { value: "comfortable", label: "Comfortable" },
          { value: "compact", label: "Compact" },
        ]}
      />
      <SelectField
        label="Times are shown in"
        value={preferences.zone}
        onChange={choose("zone")}
        options={[
          { value: "browser", label: `This browser's zone (${zoneName(zoneOf("browser"))})` },
          { value: "site", label: `The site's zone (${zoneName(zoneOf("site"))})` },
          { value: "UTC", label: "UTC" },
        ]}
      />
      <SelectField
        label="Single-letter keys"
        hint="Turn them off if you dictate to the computer."
        value={preferences.shortcuts}
        onChange={choose("shortcuts")}
        options={[
          { value: "on", label: "On" },
          { value: "off", label: "Off" },
        ]}
      />
    </Panel>
  );
}
