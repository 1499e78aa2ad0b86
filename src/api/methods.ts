// Which methods a path has: the router only knows that it does not have the one that was asked.

interface Route {
  readonly method: string;
  readonly path: string;
}

const hasParameter = ({ path }: Route) => path.includes("/:");

/** The methods of a path; none where there is nothing. A path that is written out is not one with a parameter too. */
export function methodTable(routes: readonly Route[]): (path: string) => readonly string[] {
  const [written, patterns] = split(routes);
  return (path) => written.get(path) ?? [...new Set(patterns.filter(({ fits }) => fits(path)).flatMap(methodsOf))];
}

/** Calls that would be taken for a path with a parameter, though their path is written out and lacks the method. */
export function mistakenRoutes(routes: readonly Route[]): Route[] {
  const [written, patterns] = split(routes);
  return [...written].flatMap(([path, methods]) => {
    const mistaken = patterns.filter(({ method, fits }) => fits(path) && !methods.includes(method));
    return [...new Set(mistaken.map(({ method }) => method))].map((method) => ({ method, path }));
  });
}

interface Pattern extends Route {
  fits(path: string): boolean;
}

function split(routes: readonly Route[]): [written: Map<string, string[]>, patterns: Pattern[]] {
  const written = Map.groupBy(
    routes.filter((route) => !hasParameter(route)),
    ({ path }) => path,
  );
  const patterns = routes.filter(hasParameter).map((route) => {
    const pattern = new RegExp(`^${route.path.replaceAll(".", "\\.").replaceAll(/:\w+/g, "[^/]+")}$`);
    return { ...route, fits: (path: string) => pattern.test(path) };
  });
  const methods = new Map([...written].map(([path, same]) => [path, same.flatMap(methodsOf)]));
  // /v1/events/exports stands above exports, and is no event of this name.
  for (const { path } of patterns) {
    const above = path.slice(0, path.indexOf("/:"));
    if (!methods.has(above)) methods.set(above, []);
  }
  return [methods, patterns];
}

function methodsOf({ method }: Route): string[] {
  return method === "GET" ? ["GET", "HEAD"] : [method];
}
