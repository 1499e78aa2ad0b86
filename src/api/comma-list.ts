import { z } from "zod";
import { faultsOf } from "../lib/fault.ts";

const LIST_ITEMS_MAX = 100;

/** A comma-separated list of values, each checked by the schema. */
export function commaListParameter<Item>(item: z.ZodType<Item>, description: string) {
  return z
    .string()
    .transform((text, context): Item[] => {
      const fault = (message: string): never => {
        context.addIssue({ code: "custom", message });
        return z.NEVER;
      };
      const parts = text.split(",").map((part) => part.trim());
      if (parts.length > LIST_ITEMS_MAX) return fault(`must have at most ${LIST_ITEMS_MAX} values`);
      if (parts.includes("")) return fault("has an empty value; separate values by single commas");
      const items: Item[] = [];
      for (const part of new Set(parts)) {
        const parsed = item.safeParse(part);
        if (!parsed.success) return fault(faultsOf(parsed.error)[0]!.message);
        items.push(parsed.data);
      }
      return items;
    })
    .optional()
    .describe(`${description}; separate several values by commas, at most ${LIST_ITEMS_MAX}`);
}
