import { z } from "zod";
import { COMMENT_BYTES_MAX } from "../model/alert.ts";

// Fields that several calls on alerts take.

export const ADDRESS_CHARACTERS_MAX = 254;

export const commentText = z
  .string()
  .min(1)
  .refine((text) => text === "" || text.trim() !== "", "must not be blank")
  .refine((text) => Buffer.byteLength(text) <= COMMENT_BYTES_MAX, `must be at most ${COMMENT_BYTES_MAX} bytes of UTF-8`)
  .describe(`Markdown, at most ${COMMENT_BYTES_MAX} bytes of UTF-8; stored unchanged`);
export const assigneeSchema = z
  .email("must be an e-mail address")
  .max(ADDRESS_CHARACTERS_MAX)
  .describe("e-mail address of the person who handles the alert");
