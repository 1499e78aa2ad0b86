import { keyLabel, KEYS } from "../../app/keys.ts";
import { glyphOf, outlineOf } from "../../components/axis/shapes.ts";
import type { Severity } from "../../data/client.ts";

const SAMPLES: readonly (readonly [type: string, severity: Severity, words: string])[] = [
  ["access_granted", "info", "let in"],
  ["access_denied", "medium", "refused"],
  ["person", "low", "person, held door"],
  ["door_forced", "medium", "unknown device, forced"],
  ["ids_alert", "high", "intrusion"],
  ["call_started", "info", "call"],
  ["camera_offline", "medium", "dark"],
];

const LASTING_PX = 14;
const ink = (name: string | undefined) => (name === undefined ? "none" : `var(--${name})`);

/** What the shapes mean, and the keys. */
export function Legend() {
  return (
    <div className="flex h-8 shrink-0 items-center gap-4 overflow-hidden border-t border-line bg-panel px-4 text-2xs whitespace-nowrap text-ink3 max-md:hidden">
      {SAMPLES.map(([type, severity, words]) => {
        const glyph = glyphOf({ type, severity, raw: {} }, true);
        const isLasting = ["bar", "capsule", "dark"].includes(glyph.shape);
        return (
          <span key={type} className="flex items-center gap-1.5">
            <svg width={16} height={16} viewBox={isLasting ? "-1 -8 16 16" : "-8 -8 16 16"} aria-hidden>
              <path
                d={outlineOf(glyph.shape, 0, 0, LASTING_PX, 1)}
                fill={ink(glyph.fill)}
                fillOpacity={glyph.fillOpacity}
                stroke={ink(glyph.stroke)}
                strokeWidth={glyph.strokeWidth}
                strokeLinecap="round"
              />
            </svg>
            {words}
          </span>
        );
      })}
      <span className="ml-auto flex items-center gap-2 max-xl:hidden">
        <Key of="earlier" />
        <Key of="later" /> move <Key of="zoomIn" />
        <Key of="zoomOut" /> zoom <Key of="nextAlert" /> next alert <Key of="follow" /> follow live
      </span>
    </div>
  );
}

const Key = ({ of }: { of: keyof (typeof KEYS)["axis"] }) => <kbd>{keyLabel(KEYS.axis[of].keys[0])}</kbd>;
