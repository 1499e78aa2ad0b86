import { expect, test } from "vitest";
import { demoEvents } from "../src/demo/demo.ts";
import { loadBuiltinRules } from "../src/detection/rules/builtin.ts";
import { DetectionEngine } from "../src/detection/detection-engine.ts";
import { DAY_MS, formatTime } from "../src/lib/time.ts";

/** The incidents of the demo's week, with the rules that detect them. */
const STORIES = {
  "a password is guessed": [
    "network.brute_force",
    "network.brute_force_then_success",
    "network.login_from_abusive_address",
    "network.config_change_at_night",
    "network.remote_access_opened",
  ],
  "every port is tried": ["network.port_sweep"],
  "somebody walks in and plugs something in": [
    "site.intrusion_across_domains",
    "network.unknown_device",
    "network.ids_critical",
    "network.command_and_control",
  ],
  "a telephone account is used up": [
    "talk.sip_scan",
    "talk.registration_failures",
    "talk.account_taken_over",
    "talk.toll_fraud",
  ],
};

test("the built-in rules detect every incident of the demo", () => {
  const to = Date.UTC(2026, 10, 15, 17);
  let now = 0;
  const engine = new DetectionEngine({ now: () => now });
  for (const rule of loadBuiltinRules({ platform: "platform", timezone: "UTC" })) engine.setRule(rule);
  const fired = new Set<string>();
  let number = 0;
  for (const draft of demoEvents({ seed: 1, from: to - 7 * DAY_MS, to, count: 6000, platform: "platform" })) {
    const { timestampMs, type, source, severity, raw, enrichment } = draft;
    now = timestampMs;
    const id = `evt_${(++number).toString(16).padStart(32, "0")}`;
    const event = { id, type, source, severity, class: draft.class, timestamp: formatTime(now), raw, enrichment };
    for (const finding of engine.process([event]).findings) fired.add(finding.rule.name);
  }
  for (const [story, names] of Object.entries(STORIES)) {
    expect(
      names.filter((name) => !fired.has(name)),
      story,
    ).toEqual([]);
  }
});
