import type { z } from "zod";
import { settingMeta } from "./setting-types.ts";

// Values for settings that a test does not name one by one.

/** Texts of which every common type of setting accepts one. */
const SAMPLE_TEXTS = [
  "some text",
  "4096",
  "https://example.com/in",
  "0123456789abcdef",
  "mail.example.com",
  "a@example.com",
  "!room:example.com",
  '{"text":"{{headline}}"}',
  "12345678:abcdefghijklmnopqrstuvwxyz_0123456",
];

/** A text that the setting accepts, and the value it is parsed to. */
export function sampleSetting(schema: z.ZodType): readonly [text: string, value: unknown] {
  const { read, allowed } = settingMeta.get(schema)!;
  for (const text of SAMPLE_TEXTS) {
    const parsed = schema.safeParse(read(text));
    if (parsed.success) return [text, parsed.data];
  }
  throw new Error(`no sample text is ${allowed}: add one to SAMPLE_TEXTS`);
}

export function defaultSettings(shape: Readonly<Record<string, z.ZodType>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(shape).map(([name, schema]) => [name, schema.parse(settingMeta.get(schema)!.fallback)]),
  );
}
