import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Link,
  redirect,
  type ErrorComponentProps,
} from "@tanstack/react-router";
import { EmptyScreen, Failure } from "../components/ui/states.tsx";
import { screenSearch } from "./search-schema.ts";
import { parseSearch, stringifySearch } from "./search-string.ts";
import { SessionGate } from "./session/gate.tsx";
import { Shell } from "./shell/shell.tsx";

function FailedScreen({ error, reset }: ErrorComponentProps) {
  return (
    <main>
      <h1 className="sr-only">Something went wrong</h1>
      <Failure error={error as Error} onRetry={reset} />
    </main>
  );
}

// Every screen is a file of its own, loaded when it is first opened.

const root = createRootRoute({
  component: () => (
    <SessionGate>
      <Shell />
    </SessionGate>
  ),
  notFoundComponent: () => (
    <EmptyScreen heading="Not found" title="There is no such page">
      <Link to="/alerts" className="text-accent underline">
        Go to the alerts
      </Link>
    </EmptyScreen>
  ),
  errorComponent: FailedScreen,
});

const index = createRoute({
  getParentRoute: () => root,
  path: "/",
  beforeLoad: () => {
    throw redirect({ to: "/home" });
  },
});

const home = createRoute({
  getParentRoute: () => root,
  path: "/home",
  validateSearch: screenSearch([]),
  component: lazyRouteComponent(() => import("../screens/home/home-screen.tsx"), "HomeScreen"),
});
const alerts = createRoute({
  getParentRoute: () => root,
  path: "/alerts",
  validateSearch: screenSearch([
    "view",
    "status",
    "severity",
    "rule_name",
    "source",
    "assignee",
    "entity",
    "event_id",
    "tag",
    "search",
    "time",
    "group",
    "sort",
    "density",
    "alert",
  ]),
  component: lazyRouteComponent(() => import("../screens/alerts/alerts-screen.tsx"), "AlertsScreen"),
});
const axis = createRoute({
  getParentRoute: () => root,
  path: "/axis",
  validateSearch: screenSearch(["view", "alert", "entity", "show"]),
  component: lazyRouteComponent(() => import("../screens/axis/axis-screen.tsx"), "AxisScreen"),
});
const events = createRoute({
  getParentRoute: () => root,
  path: "/events",
  validateSearch: screenSearch([
    "view",
    "search",
    "source",
    "type",
    "severity",
    "filter",
    "columns",
    "sort",
    "event",
    "live",
  ]),
  component: lazyRouteComponent(() => import("../screens/events/events-screen.tsx"), "EventsScreen"),
});
const flows = createRoute({
  getParentRoute: () => root,
  path: "/flows",
  validateSearch: screenSearch([
    "view",
    "host",
    "src",
    "dst",
    "port",
    "protocol",
    "exporter",
    "split",
    "dim",
    "metric",
  ]),
  component: lazyRouteComponent(() => import("../screens/flows/flows-screen.tsx"), "FlowsScreen"),
});
const rules = createRoute({
  getParentRoute: () => root,
  path: "/rules",
  validateSearch: screenSearch([
    "tab",
    "search",
    "source",
    "severity",
    "enabled",
    "sort",
    "rule",
    "edit",
    "list",
    "entry",
  ]),
  component: lazyRouteComponent(() => import("../screens/rules/rules-screen.tsx"), "RulesScreen"),
});
const sources = createRoute({
  getParentRoute: () => root,
  path: "/sources",
  validateSearch: screenSearch(["connect", "source"]),
  component: lazyRouteComponent(() => import("../screens/sources/sources-screen.tsx"), "SourcesScreen"),
});
const settings = createRoute({
  getParentRoute: () => root,
  path: "/settings",
  validateSearch: screenSearch(["section"]),
  component: lazyRouteComponent(() => import("../screens/settings/settings-screen.tsx"), "SettingsScreen"),
});
const entity = createRoute({
  getParentRoute: () => root,
  path: "/entity/$kind/$value",
  validateSearch: screenSearch([]),
  component: lazyRouteComponent(() => import("../screens/entity/entity-screen.tsx"), "EntityScreen"),
});

export const router = createRouter({
  routeTree: root.addChildren([index, home, alerts, axis, events, flows, rules, sources, settings, entity]),
  parseSearch,
  stringifySearch,
  // What a screen does not know leaves the address, too.
  search: { strict: true },
  // Within the frame, which stays: a screen that fails leaves the way to the others.
  defaultErrorComponent: FailedScreen,
  defaultPreload: false,
  scrollRestoration: false,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
