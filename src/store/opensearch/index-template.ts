import type { Logger } from "pino";
import type { OpenSearchClient } from "./opensearch-client.ts";

// Index templates: OpenSearch applies them to every daily index that is created with a name of their pattern.

export interface IndexTemplate {
  /** `<prefix>-flows`. Its indices are `<name>-YYYY.MM.DD`. */
  readonly name: string;
  /** Raised with every change, so that an older node does not undo what a newer one has written. */
  readonly version: number;
  readonly settings: object;
  readonly mappings: object;
}

interface StoredTemplates {
  readonly index_templates: readonly { readonly index_template: { readonly version?: number } }[];
}

/** Writes the template unless a newer version of the service has. Indices that exist keep their mappings. */
export async function putIndexTemplate(client: OpenSearchClient, template: IndexTemplate, log: Logger): Promise<void> {
  const { name, version, settings, mappings } = template;
  const path = `/_index_template/${name}`;
  const kind = { operation: "template" };
  const stored = await client.send<Partial<StoredTemplates>>(kind, { method: "GET", path, ignore: [404] });
  const found = stored.index_templates?.[0]?.index_template.version ?? 0;
  if (found > version) {
    log.warn(
      { template: name, version: found },
      "a newer version of the service has written the index template: it stays",
    );
    return;
  }
  // A name such as `<prefix>-flows-flows-…` belongs to the template of another prefix; every day begins with a 2.
  const body = { index_patterns: [`${name}-2*`], version, priority: 200, template: { settings, mappings } };
  await client.send(kind, { method: "PUT", path, body });
}
