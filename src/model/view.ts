import { z } from "zod";
import { hasUnseen } from "../lib/text.ts";
import { formatTime } from "../lib/time.ts";

// Saved views of the console: a named search of one screen with its display settings.

export const SCREENS = ["home", "alerts", "axis", "events", "flows", "rules", "sources", "entity"] as const;
export type Screen = (typeof SCREENS)[number];
const DENSITIES = ["comfortable", "compact"] as const;

/** Views of one key. */
export const VIEWS_PER_KEY_MAX = 100;
/** Shared views of all keys, each of which appears in everybody's list. */
export const SHARED_VIEWS_MAX = 1000;
const NAME_CHARACTERS_MAX = 100;
const SEARCH_CHARACTERS_MAX = 4096;
const COLUMNS_MAX = 50;
const COLUMN_CHARACTERS_MAX = 200;
const GROUPING_CHARACTERS_MAX = 200;

export interface SavedView {
  readonly id: string;
  /** The id and the name of the key that created it. */
  readonly owner: string;
  readonly ownerName: string;
  readonly screen: Screen;
  readonly name: string;
  readonly search: string;
  readonly columns: readonly string[] | null;
  readonly density: (typeof DENSITIES)[number] | null;
  readonly grouping: string | null;
  readonly shared: boolean;
  /** The place among the owner's views of the screen, from 0 without gaps. */
  readonly position: number;
  readonly createdAt: number;
  readonly updatedAt: number;
  /** Rises by one with each edit, but not when other views move it. */
  readonly revision: number;
}

// Others read them.
const visible = (text: string) => !hasUnseen(text);
const INVISIBLE = "must not contain control or format characters";

export const screenSchema = z.enum(SCREENS);
const nameSchema = z.string().trim().min(1).max(NAME_CHARACTERS_MAX).refine(visible, INVISIBLE);
const searchSchema = z
  .string()
  .max(SEARCH_CHARACTERS_MAX)
  .refine(visible, INVISIBLE)
  .describe("the query of the screen's address, without the question mark");
const columnsSchema = z
  .array(z.string().min(1).max(COLUMN_CHARACTERS_MAX).refine(visible, INVISIBLE))
  .max(COLUMNS_MAX)
  .refine((columns) => new Set(columns).size === columns.length, "must not name a column twice")
  .nullable()
  .describe("columns in their order; null: those of the screen");
const densitySchema = z.enum(DENSITIES).nullable().describe("height of rows; null: the reader's own choice");
const groupingSchema = z
  .string()
  .min(1)
  .max(GROUPING_CHARACTERS_MAX)
  .refine(visible, INVISIBLE)
  .nullable()
  .describe("what rows are grouped by; null: nothing");
const sharedSchema = z.boolean().describe("true: everybody sees the view");
const positionSchema = z
  .int()
  .min(0)
  .max(VIEWS_PER_KEY_MAX - 1)
  .describe("place among the owner's views of the screen, from 0; a higher number than there are views means the end");

export const newViewSchema = z
  .strictObject({
    screen: screenSchema,
    name: nameSchema,
    search: searchSchema,
    columns: columnsSchema.optional(),
    density: densitySchema.optional(),
    grouping: groupingSchema.optional(),
    shared: sharedSchema.default(false),
    position: positionSchema.optional(),
  })
  .meta({ id: "NewView" });

/** The display settings of a new view; omitted ones are null. */
export function displayOf({ columns = null, density = null, grouping = null }: z.infer<typeof newViewSchema>) {
  return { columns, density, grouping };
}

export const viewPatchSchema = z
  .strictObject({
    name: nameSchema.optional(),
    search: searchSchema.optional(),
    columns: columnsSchema.optional(),
    density: densitySchema.optional(),
    grouping: groupingSchema.optional(),
    shared: sharedSchema.optional(),
    position: positionSchema.optional(),
  })
  .refine((patch) => Object.keys(patch).length > 0, { message: "is empty; send at least one field" })
  .meta({ id: "ViewPatch", minProperties: 1 });

export const viewSchema = z
  .object({
    id: z.string(),
    screen: screenSchema,
    name: z.string(),
    search: z.string(),
    columns: z.array(z.string()).nullable(),
    density: densitySchema,
    grouping: z.string().nullable(),
    shared: z.boolean(),
    position: z.int(),
    owner: z.string().describe("name of the key that created it"),
    own: z.boolean().describe("true: the key of the request created it"),
    editable: z.boolean().describe("true: the key of the request may change and delete it"),
    created_at: z.string(),
    updated_at: z.string(),
  })
  .meta({ id: "View" });

/** A view as the API returns it to one key. */
export function viewResponse(view: SavedView, { own, editable }: { own: boolean; editable: boolean }) {
  const { id, screen, name, search, columns, density, grouping, shared, position, ownerName } = view;
  const [created_at, updated_at] = [formatTime(view.createdAt), formatTime(view.updatedAt)];
  const shown = { id, screen, name, search, columns, density, grouping, shared, position };
  return { ...shown, owner: ownerName, own, editable, created_at, updated_at };
}
