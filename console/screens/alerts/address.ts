import type { AlertFilters } from "../../data/alerts.ts";

// What the address says about the list. A view is a set of filters with a name; filters in the address are added to it, and `any`
// takes one of the view's away. Filters without a view stand alone: a link shows exactly what it says.

export const FILTER_NAMES = [
  "status",
  "severity",
  "rule_name",
  "source",
  "assignee",
  "entity",
  "tag",
  "event_id",
  "search",
  "time",
] as const;
export type FilterName = (typeof FILTER_NAMES)[number];
export type FilterTexts = { readonly [Name in FilterName]?: string | undefined };

export const GROUPINGS = ["rule", "none"] as const;
export type Grouping = (typeof GROUPINGS)[number];
export const SORTS = ["severity", "created_at", "last_event_at", "event_count"] as const;
export type Sort = (typeof SORTS)[number];
const DENSITIES = ["comfortable", "compact"] as const;
export type Density = (typeof DENSITIES)[number];

/** Takes a filter of the view away. */
const ANY = "any";
/** In a filter of assignees: who is looking, so that a shared view is everybody's own. */
export const ME = "me";
export const NOBODY = "none";

export interface View {
  readonly id: string;
  readonly name: string;
  readonly filters: FilterTexts;
  readonly grouping?: Grouping | undefined;
  readonly sort?: Sort | undefined;
  readonly density?: Density | undefined;
}

export const BUILT_IN_VIEWS: readonly View[] = [
  { id: "todo", name: "To do", filters: { status: "open", severity: "critical,high" } },
  { id: "mine", name: "Mine", filters: { status: "open,acknowledged", assignee: ME } },
  { id: "in-hand", name: "In hand", filters: { status: "acknowledged" } },
  { id: "all", name: "All open", filters: { status: "open,acknowledged" } },
  { id: "resolved", name: "Resolved", filters: { status: "resolved" }, grouping: "none", sort: "created_at" },
];

type Search = Readonly<Record<string, string | undefined>>;

function explicitFilters(search: Search): FilterTexts {
  const filters: Partial<Record<FilterName, string>> = {};
  for (const name of FILTER_NAMES) {
    const text = search[name];
    if (text !== undefined && text !== "") filters[name] = text;
  }
  return filters;
}

export interface ListState {
  /** Undefined: filters without a view, or a view that is not there. */
  readonly view: View | undefined;
  readonly filters: FilterTexts;
  readonly grouping: Grouping;
  readonly sort: Sort;
  /** Undefined: as the reader prefers it. */
  readonly density: Density | undefined;
  /** Something differs from the view. */
  readonly isChanged: boolean;
}

const oneOf = <Value extends string>(values: readonly Value[], text: string | undefined) =>
  values.find((value) => value === text);

export function readList(search: Search, saved: readonly View[]): ListState {
  const explicit = explicitFilters(search);
  const hasExplicit = Object.keys(explicit).length > 0;
  const id = search["view"] ?? (hasExplicit ? undefined : BUILT_IN_VIEWS[0]!.id);
  const view = [...BUILT_IN_VIEWS, ...saved].find((each) => each.id === id);
  const merged: Partial<Record<FilterName, string>> = { ...view?.filters, ...explicit };
  for (const name of FILTER_NAMES) if (merged[name] === ANY) delete merged[name];
  const grouping = oneOf(GROUPINGS, search["group"]) ?? view?.grouping ?? "rule";
  const sort = oneOf(SORTS, search["sort"]) ?? view?.sort ?? "severity";
  const density = oneOf(DENSITIES, search["density"]) ?? view?.density;
  return {
    view,
    filters: merged,
    grouping,
    sort,
    density,
    isChanged:
      view !== undefined &&
      (!isSame(view.filters, merged) ||
        grouping !== (view.grouping ?? "rule") ||
        sort !== (view.sort ?? "severity") ||
        density !== view.density),
  };
}

const isSame = (a: FilterTexts, b: FilterTexts) => FILTER_NAMES.every((name) => a[name] === b[name]);

/** The part of the address that changes some filters; undefined takes one away. */
export function writeFilters(state: ListState, changes: FilterTexts): Record<string, string | undefined> {
  const written: Record<string, string | undefined> = {};
  for (const [name, text] of Object.entries(changes) as [FilterName, string | undefined][]) {
    const inView = state.view?.filters[name];
    if (text === undefined) written[name] = inView === undefined ? undefined : ANY;
    else written[name] = text === inView ? undefined : text;
  }
  const left = FILTER_NAMES.some((name) => (name in changes ? changes[name] : state.filters[name]) !== undefined);
  // Without a view and without filters, an address means the first view, not everything.
  return state.view === undefined && !left ? { ...written, view: "all", status: ANY } : written;
}

/** The filters and the order of a view, as they are typed in the address; grouping and density have fields of their own. */
export function viewSearch({ filters, sort }: ListState): string {
  const parameters = new URLSearchParams();
  for (const name of FILTER_NAMES) if (filters[name] !== undefined) parameters.set(name, filters[name]);
  parameters.set("sort", sort);
  return parameters.toString();
}

export interface StoredView {
  readonly id: string;
  readonly name: string;
  readonly search: string;
  readonly density: Density | null;
  readonly grouping: string | null;
}

export function readStoredView({ id, name, search, density, grouping }: StoredView): View {
  const parameters = Object.fromEntries(new URLSearchParams(search));
  return {
    id,
    name,
    filters: explicitFilters(parameters),
    // Earlier versions kept the grouping in the search.
    grouping: oneOf(GROUPINGS, grouping ?? parameters["group"]),
    sort: oneOf(SORTS, parameters["sort"]),
    density: density ?? undefined,
  };
}

const list = (text: string | undefined) =>
  text
    ?.split(",")
    .map((item) => item.trim())
    .filter((item) => item !== "");

/** The filters as the service takes them. Undefined if they ask for the reader's own, and nobody knows who that is. */
export function toFilters(
  texts: FilterTexts,
  range: { readonly fromMs: number; readonly toMs: number | undefined },
  me: string | undefined,
): AlertFilters | undefined {
  const assignee = list(texts.assignee)?.map((name) => (name === ME ? me : name));
  if (assignee?.includes(undefined) === true) return undefined;
  const filters = {
    status: list(texts.status),
    severity: list(texts.severity),
    rule_name: list(texts.rule_name),
    source: list(texts.source),
    assignee,
    // The value of an entity may contain a comma; there is one in a filter.
    entity: texts.entity === undefined ? undefined : [texts.entity],
    event_id: list(texts.event_id),
    tag: list(texts.tag),
    search: texts.search,
    time: texts.time === "created" ? "created" : "overlap",
    from: new Date(range.fromMs).toISOString(),
    to: range.toMs === undefined ? undefined : new Date(range.toMs).toISOString(),
  };
  return Object.fromEntries(Object.entries(filters).filter(([, value]) => value !== undefined)) as AlertFilters;
}
