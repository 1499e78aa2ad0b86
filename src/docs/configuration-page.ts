import { stringify } from "yaml";
import { settingEntries } from "../config/config.ts";
import { code, markdownTable } from "./markdown.ts";

/** docs/configuration.md, from the schema of the settings. */
export function configurationPage(): string {
  const entries = settingEntries();
  const rows = entries.map(({ path, variable, about, allowed, fallback }) => [
    code(path),
    code(variable),
    code(shown(fallback)),
    `${about}. ${allowed[0]!.toUpperCase()}${allowed.slice(1)}.`,
  ]);
  return `# Configuration

Printed by \`npm run docs\` from the schema in \`src/config/settings.ts\`; change that, not this page.

A setting is looked for in four places; the last one that has it wins:

1. its default,
2. the YAML file named by \`--config\` or \`TOCSIN_CONFIG\`, or \`tocsin.yaml\` in the working folder where there is one,
3. its variable (an empty one counts as not set),
4. its flag: the name in the file with dashes for dots and underscores, so that \`retention.events_days\` is
   \`--retention-events-days\`.

They are read at a start: a setting that is changed needs a restart.

\`tocsin check\` says what would be used and where each value comes from, and starts nothing. Every fault is reported at
once, with the place it stands in and what is allowed there. A name that is not a setting is a fault too, and so are files,
sockets and addresses that the service could not use, and a port that two would open: each is looked at by the part that
will need it.

${markdownTable(["file", "variable", "default", "what it says"], rows)}

## A file with every setting at its default

\`\`\`yaml
${yamlOfDefaults()}\`\`\`
`;
}

function shown(value: unknown): string {
  return Array.isArray(value) ? JSON.stringify(value) : String(value);
}

function yamlOfDefaults(): string {
  const root: Record<string, unknown> = {};
  for (const { path, fallback } of settingEntries()) {
    const names = path.split(".");
    const last = names.pop()!;
    let group = root;
    for (const name of names) group = (group[name] ??= {}) as Record<string, unknown>;
    group[last] = fallback;
  }
  return stringify(root);
}
