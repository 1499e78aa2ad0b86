import { z } from "zod";
import { BESIDE_OTHERS } from "../lib/fault.ts";
import { DAY_MS } from "../lib/time.ts";
import { isZone } from "../model/hours.ts";
import { boundParameter } from "../model/time-bound.ts";
import { REPORT_POLICY } from "../reports/report-style.ts";
import { shiftPage } from "../reports/shift-page.ts";
import { gatherShiftReport, type ShiftReportOptions } from "../reports/shift-report.ts";
import { shiftReportSchema } from "../reports/shift-report-schema.ts";
import { abortOnDisconnect } from "./client-disconnect.ts";
import { endpoint, type Endpoint } from "./endpoint.ts";
import { markIncomplete } from "./incomplete-response.ts";
import { invalid, metaSchema } from "./problems.ts";
import { SHIFT_REPORT_EXAMPLE } from "./report-example.ts";
import { data, page } from "./response.ts";

const HOUR_MS = 3_600_000;
const SHIFT_MS_DEFAULT = 12 * HOUR_MS;
/** A month in which the clocks are set back is an hour longer. */
const RANGE_MS_MAX = 31 * DAY_MS + HOUR_MS;
const ZONE_CHARACTERS_MAX = 100;
const FORMATS = ["html", "json"] as const;

export interface ReportEndpointOptions extends ShiftReportOptions {
  /** The zone of the site. */
  readonly timezone: string;
}

export function reportEndpoints(options: ReportEndpointOptions): Endpoint[] {
  const { store, now } = options;
  return [
    endpoint({
      method: "GET",
      path: "/v1/reports/shift",
      operationId: "getShiftReport",
      tag: "Reports",
      summary: "Get a shift report, to read, to print or as data",
      description:
        "What happened in a range, by default the last 12 hours: alerts in numbers and what was done about them, alerts still open, " +
        "noisy rules, traffic, the health of the sources and losses. The period of the same length directly before is given for " +
        "comparison. Alerts count by the time at which they were created, acknowledged or resolved; open alerts, sources, drops and " +
        "disk are as of the request. The page needs nothing from elsewhere and has no script; browsers print it on A4.",
      scopes: ["alerts:read", "events:read"],
      query: z
        .strictObject({
          from: boundParameter
            .optional()
            .describe("start of the range, inclusive; also relative, such as `now-8h`; default: 12 hours before `to`"),
          to: boundParameter
            .optional()
            .describe("end of the range, exclusive; at most 31 days after `from`; default: now"),
          timezone: z
            .string()
            .max(ZONE_CHARACTERS_MAX)
            .refine(isZone, "must be the name of a time zone, such as UTC or Europe/Berlin")
            .optional()
            .describe("zone of the times on the page; default: that of the site"),
          format: z
            .enum(FORMATS)
            .optional()
            .describe("default: html for browsers, which accept `text/html`, otherwise json"),
        })
        .superRefine(({ from, to }, context) => {
          if (typeof from !== "number" || typeof to !== "number") return;
          const message = rangeFault(from, to);
          if (message !== undefined) context.addIssue({ code: "custom", path: ["from"], message });
        }, BESIDE_OTHERS),
      responses: {
        200: {
          description: "the report",
          content: {
            "application/json": z.object({ data: shiftReportSchema, meta: metaSchema }),
            "text/html": z.string(),
          },
          example: SHIFT_REPORT_EXAMPLE,
        },
      },
      headers: { 200: ["X-Tocsin-Incomplete"] },
      handle: async ({ query, key, request }) => {
        const toMs = query.to ?? now();
        const fromMs = query.from ?? toMs - SHIFT_MS_DEFAULT;
        const message = rangeFault(fromMs, toMs);
        if (message !== undefined) throw invalid([{ field: "from", message }]);
        const { timezone = options.timezone } = query;
        const report = await abortOnDisconnect(request.raw.socket, (signal) =>
          gatherShiftReport(options, { fromMs, toMs, timezone }, { client: key.id, signal }),
        );
        const format = query.format ?? (acceptsPage(request.headers.accept) ? "html" : "json");
        const vary = { Vary: "Accept" };
        const response =
          format === "html"
            ? page(shiftPage(report), { ...vary, "Content-Security-Policy": REPORT_POLICY })
            : data(report, 200, vary);
        return markIncomplete(response, store, ["events", "flows"], { fromMs: 2 * fromMs - toMs, toMs });
      },
    }),
  ];
}

function rangeFault(fromMs: number, toMs: number): string | undefined {
  if (fromMs >= toMs) return "must be before to";
  return toMs - fromMs > RANGE_MS_MAX ? "is more than 31 days before to" : undefined;
}

/** A browser that navigates names HTML; scripts and programs accept anything or JSON. */
function acceptsPage(accept = ""): boolean {
  return accept.split(",").some((part) => part.split(";", 1)[0]!.trim().toLowerCase() === "text/html");
}
