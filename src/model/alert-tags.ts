import { z } from "zod";

// Tags that people give to alerts. Tags of the rule are separate: they are part of the alert's `rule`.

export const ALERT_TAGS_MAX = 20;
const ALERT_TAG_CHARACTERS_MAX = 50;

/** No comma, which separates tags in filters, and no markup. */
const TAG = /^[\p{L}\p{N}][\p{L}\p{M}\p{N}_.:/@+#-]*$/u;
const TAG_WORDS = "must start with a letter or digit and have only letters, digits and _ . : / @ + # -";

/** One tag has one spelling: lower case, without spaces. */
function normaliseTag(text: string): string {
  return text.normalize("NFC").trim().toLowerCase().replaceAll(/\s+/gu, "-");
}

export const tagSchema = z
  .string()
  .overwrite(normaliseTag)
  .min(1, { abort: true })
  .max(ALERT_TAG_CHARACTERS_MAX, { abort: true })
  .regex(TAG, TAG_WORDS);

export const tagsSchema = z
  .array(tagSchema)
  .max(ALERT_TAGS_MAX)
  .describe(
    `at most ${ALERT_TAGS_MAX} tags of at most ${ALERT_TAG_CHARACTERS_MAX} characters; stored in lower case, with a dash for spaces; ${TAG_WORDS}`,
  );

export interface TagChange {
  readonly add: readonly string[];
  readonly remove: readonly string[];
  /** Replaces the tags of the alert, before others are added and removed. */
  readonly set?: readonly string[] | undefined;
}

/** The tags after the change, sorted. */
export function changeTags(tags: readonly string[], { set = tags, add, remove }: TagChange): string[] {
  return [...new Set([...set, ...add])].filter((tag) => !remove.includes(tag)).sort();
}
