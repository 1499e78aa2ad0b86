import { useQuery } from "@tanstack/react-query";
import { Panel } from "../../components/ui/heading.tsx";
import { siteQuery } from "../../data/site.ts";

const PAGES = [
  { href: "/docs", name: "The API, to read and to try" },
  { href: "/openapi.json", name: "The OpenAPI document" },
  { href: "/metrics", name: "Metrics for Prometheus" },
];

export function About() {
  const { data: site } = useQuery(siteQuery);
  return (
    <Panel className="space-y-3 text-sm">
      <p className="text-ink2">
        Tocsin collects the security events and network flows of one site, runs detection rules over them, and keeps the
        alerts that people work on.
      </p>
      <dl className="grid min-h-16 grid-cols-[auto_1fr] gap-x-6 gap-y-1">
        <dt className="text-ink3">Site</dt>
        <dd>{site?.name}</dd>
        <dt className="text-ink3">Version</dt>
        <dd>{site?.version}</dd>
        <dt className="text-ink3">Zone of the site</dt>
        <dd>{site?.timezone}</dd>
      </dl>
      <ul className="space-y-1">
        {PAGES.map(({ href, name }) => (
          <li key={href}>
            <a href={href} className="inline-block py-1 text-accent underline underline-offset-3">
              {name}
            </a>
          </li>
        ))}
      </ul>
    </Panel>
  );
}
