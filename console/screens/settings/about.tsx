import { Panel } from "../../components/ui/heading.tsx";

const PAGES = [
  { href: "/docs", name: "The API, to read and to try" },
  { href: "/openapi.json", name: "The OpenAPI document" },
  { href: "/metrics", name: "Metrics for Prometheus" },
];

export function About() {
  return (
    <Panel className="space-y-3 text-sm">
      <p className="text-ink2">
        Tocsin collects the security events and network flows of one site, runs detection rules over them, and keeps the
        alerts that people work on.
      </p>
      <ul className="space-y-1">
        {PAGES.map(({ href, name }) => (
          <li key={href}>
            <a href={href} className="text-accent underline underline-offset-3">
              {name}
            </a>
          </li>
        ))}
      </ul>
    </Panel>
  );
}
