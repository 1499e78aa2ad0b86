import { describe, expect, test } from "vitest";
import { partFaults } from "../commands/check-parts.ts";
import { loadSettings, settingEntries, type LoadedSettings } from "../config/config.ts";
import { sampleSetting } from "../lib/setting-types.fixture.ts";
import { settingMeta } from "../lib/setting-types.ts";
import { snakeCase } from "../lib/text.ts";
import { CHANNELS } from "../model/rule.ts";
import { CHANNEL_DEFINITIONS } from "./channels.ts";
import { openChannels } from "./open-channels.ts";
import { messageOf, someAlert } from "./peers.fixture.ts";

// Properties of every channel in the table. Each message format has a separate test.

const pathOf = (setting: string) => `notifications.${snakeCase(setting)}`;
const load = (flags: Record<string, string>) => loadSettings({ flags, environment: {}, workingFolder: "/" });

describe.each(CHANNELS)("%s", (name) => {
  const { settings, required, urlSettings } = CHANNEL_DEFINITIONS[name];
  const schemas = settings as Record<string, Parameters<typeof sampleSetting>[0]>;
  const sampleFlags = (names: readonly string[]) =>
    Object.fromEntries(names.map((setting) => [pathOf(setting), sampleSetting(schemas[setting]!)[0]]));

  test("its settings begin with its name", () => {
    expect(Object.keys(settings).filter((setting) => !setting.startsWith(name))).toEqual([]);
  });

  test("its URLs are secrets: an incoming webhook is open to anybody who knows its URL", () => {
    const secrets = settingEntries().filter(({ isSecret }) => isSecret);
    // One with a default is the public address of a service, which the key beside it opens.
    const own = urlSettings.filter((setting) => settingMeta.get(schemas[setting]!)!.fallback === "off");
    expect(secrets.map(({ path }) => path)).toEqual(expect.arrayContaining(own.map(pathOf)));
  });

  test("it opens with its required settings, and a half-configured one is a fault", () => {
    const { settings } = load(sampleFlags(required)) as LoadedSettings;
    expect([...openChannels(settings.notifications).keys()]).toEqual([name]);
    if (required.length < 2) return;
    for (const setting of required) {
      const outcome = load(sampleFlags([setting]));
      expect("faults" in outcome && outcome.faults.length, setting).toBeGreaterThan(0);
    }
  });

  test.each(urlSettings)("tocsin check refuses a private address in %s, and so does the channel", async (setting) => {
    const flags = { ...sampleFlags(required), [pathOf(setting)]: "http://10.0.0.1/hook" };
    const { settings } = load(flags) as LoadedSettings;
    const fault = (await partFaults(settings)).find(({ path }) => path === pathOf(setting));
    expect(fault?.message).toContain("10.0.0.1");
    const sender = openChannels(settings.notifications).get(name)!;
    const outcome = await sender.send(messageOf([someAlert()]), new AbortController().signal);
    expect(outcome).toEqual({ kind: "refused", error: fault!.message });
    const allowed = load({ ...flags, "notifications.private_addresses": "on" }) as LoadedSettings;
    expect(await partFaults(allowed.settings)).not.toContainEqual(fault);
  });
});
