// The allowed methods of each path. The router only reports that the requested method is missing.

export interface Route {
  readonly method: string;
  readonly path: string;
}

const hasParameter = ({ path }: Route) => path.includes("/:");

/** The methods of a path, empty for an unknown path. A literal path takes precedence over one with a parameter. */
export function methodTable(routes: readonly Route[]): (path: string) => readonly string[] {
  const [literal, patterns] = split(routes);
  return (path) =>
    literal.get(path) ?? [...new Set(patterns.filter(({ matches }) => matches(path)).flatMap(methodsOf))];
}

/** Methods that a literal path lacks and that the router would therefore match to a path with a parameter. */
export function shadowedRoutes(routes: readonly Route[]): Route[] {
  const [literal, patterns] = split(routes);
  return [...literal].flatMap(([path, methods]) => {
    const shadowed = patterns.filter(({ method, matches }) => matches(path) && !methods.includes(method));
    return [...new Set(shadowed.map(({ method }) => method))].map((method) => ({ method, path }));
  });
}

interface RoutePattern extends Route {
  matches(path: string): boolean;
}

function split(routes: readonly Route[]): [literal: Map<string, string[]>, patterns: RoutePattern[]] {
  const literal = Map.groupBy(
    routes.filter((route) => !hasParameter(route)),
    ({ path }) => path,
  );
  const patterns = routes.filter(hasParameter).map((route) => {
    const pattern = new RegExp(`^${route.path.replaceAll(".", "\\.").replaceAll(/:\w+/g, "[^/]+")}$`);
    return { ...route, matches: (path: string) => pattern.test(path) };
  });
  const methods = new Map([...literal].map(([path, same]) => [path, same.flatMap(methodsOf)]));
  // The parent of single items is not an item itself: /v1/events/exports is no event with this id.
  for (const { path } of patterns) {
    const parent = path.slice(0, path.indexOf("/:"));
    if (!methods.has(parent)) methods.set(parent, []);
  }
  return [methods, patterns];
}

function methodsOf({ method }: Route): string[] {
  return method === "GET" ? ["GET", "HEAD"] : [method];
}
