import type { AlertFilters } from "./alerts.ts";

// The filters of the list in the language of searches, whose counts must be those of the list.

type Test = { readonly field: string; readonly ignore_case?: boolean } & Readonly<Record<string, unknown>>;
type Filter = Test | { readonly bool: { readonly should: readonly Test[] } };

export interface AlertQuery {
  readonly query: {
    readonly bool?: { readonly must: readonly Filter[] };
    readonly time_range?: { readonly from?: string; readonly to?: string };
    readonly time?: "created" | "overlap";
  };
  readonly search?: string;
}

const LISTED = ["status", "severity", "rule_name", "source"] as const;
const ENTITY = /^(address|user|door|camera|device|phone):/;

/** Undefined for filters that a search cannot express: it does not know the events of an alert. */
export function alertQuery(filters: AlertFilters): AlertQuery | undefined {
  if (filters.event_id !== undefined) return undefined;
  const must: Filter[] = LISTED.flatMap((field) => {
    const values = filters[field];
    return values === undefined ? [] : [{ field, in: values }];
  });
  if (filters.tag !== undefined) must.push({ field: "tags", in: filters.tag.map((tag) => tag.toLowerCase()) });
  if (filters.assignee !== undefined) {
    const people = filters.assignee.filter((name) => name !== "none");
    const tests: Test[] = people.length === 0 ? [] : [{ field: "assignee", in: people, ignore_case: true }];
    if (people.length < filters.assignee.length) tests.push({ field: "assignee", exists: false });
    must.push(oneOf(tests));
  }
  if (filters.entity !== undefined) {
    must.push(
      oneOf(
        filters.entity.map((entity) => ({
          field: ENTITY.test(entity) ? "entities" : "entities.value",
          equals: entity,
          ignore_case: true,
        })),
      ),
    );
  }
  const { from, to, time, search } = filters;
  const hasRange = from !== undefined || to !== undefined;
  return {
    query: {
      ...(must.length > 0 && { bool: { must } }),
      ...(hasRange && { time_range: { ...(from !== undefined && { from }), ...(to !== undefined && { to }) } }),
      ...(time !== undefined && { time }),
    },
    ...(search !== undefined && { search }),
  };
}

const oneOf = (tests: readonly Test[]): Filter => (tests.length === 1 ? tests[0]! : { bool: { should: tests } });
