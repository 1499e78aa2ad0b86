import { Counter, Histogram, type Registry } from "prom-client";
import type { OpenSearchFailure } from "./opensearch-errors.ts";

// The metrics of everything that is sent to OpenSearch. A registry has them once, whichever engines share the client.

/** `stored`: new. `duplicate`: stored by an earlier attempt. `refused`: never accepted as it is. `retried`: sent again. */
export type DocumentOutcome = "stored" | "duplicate" | "refused" | "retried";

export class OpenSearchMetrics {
  readonly #requests: Histogram<"operation">;
  readonly #failures: Counter<"operation" | "reason">;
  readonly #retries: Counter<"operation" | "reason">;
  readonly #documents: Counter<"kind" | "outcome">;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#requests = new Histogram({
      name: "tocsin_opensearch_request_seconds",
      help: "Time that requests to OpenSearch took, with their retries",
      labelNames: ["operation"],
      buckets: [0.005, 0.02, 0.1, 0.5, 2, 10, 30],
      registers,
    });
    this.#failures = new Counter({
      name: "tocsin_opensearch_failures_total",
      help: "Requests to OpenSearch that failed after all retries, and bulk items that were refused",
      labelNames: ["operation", "reason"],
      registers,
    });
    this.#retries = new Counter({
      name: "tocsin_opensearch_retries_total",
      help: "Requests to OpenSearch that were sent again",
      labelNames: ["operation", "reason"],
      registers,
    });
    this.#documents = new Counter({
      name: "tocsin_opensearch_documents_total",
      help: "Documents sent to OpenSearch, by what became of them",
      labelNames: ["kind", "outcome"],
      registers,
    });
  }

  took(operation: string, seconds: number): void {
    this.#requests.observe({ operation }, seconds);
  }

  failed(operation: string, reason: OpenSearchFailure): void {
    this.#failures.inc({ operation, reason });
  }

  retried(operation: string, reason: OpenSearchFailure): void {
    this.#retries.inc({ operation, reason });
  }

  documents(kind: string, outcome: DocumentOutcome, count: number): void {
    if (count > 0) this.#documents.inc({ kind, outcome }, count);
  }
}
