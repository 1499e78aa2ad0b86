import createClient from "openapi-fetch";
import type { components, paths } from "../../clients/typescript/schema.d.ts";
import { limitedFetch } from "./limits.ts";

export type Schemas = components["schemas"];
export type Alert = Schemas["Alert"];
export type AlertDetail = Schemas["AlertDetail"];
export type TimelineEntry = Schemas["TimelineEntry"];
export type Event = Schemas["Event"];
export type Rule = Schemas["Rule"];
export type Severity = Event["severity"];

export { SEVERITIES } from "./severity.ts";

export interface Fault {
  readonly field: string;
  readonly message: string;
}

/** A refused request, in the words of the service. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly faults: readonly Fault[];
  readonly requestId: string | null;

  constructor(status: number, body: unknown, requestId: string | null) {
    const error = (body as { error?: { code?: string; message?: string; details?: Fault[] } } | undefined)?.error;
    super(error?.message ?? `The service answered with status ${status}.`);
    this.name = "ApiError";
    this.status = status;
    this.code = error?.code ?? "unknown";
    this.faults = error?.details ?? [];
    this.requestId = requestId;
  }
}

/** No answer: the service is stopped, restarting, or out of reach. */
export class OfflineError extends Error {
  constructor(cause: unknown) {
    super("The service cannot be reached.", { cause });
    this.name = "OfflineError";
  }
}

export const api = createClient<paths>({
  baseUrl: location.origin,
  fetch: async (request) => {
    try {
      return await limitedFetch(request);
    } catch (error) {
      if (request.signal.aborted) throw error;
      throw new OfflineError(error);
    }
  },
  // Lists are written as the service reads them: severity=critical,high.
  querySerializer: { array: { style: "form", explode: false } },
});

/** The body of an answer; throws an `ApiError` for a refusal. */
export async function answered<Body>(
  answer: Promise<{ data?: Body; error?: unknown; response: Response }>,
): Promise<NonNullable<Body>> {
  const { data, error, response } = await answer;
  if (!response.ok || data === undefined || data === null) {
    throw new ApiError(response.status, error, response.headers.get("X-Request-Id"));
  }
  return data;
}
