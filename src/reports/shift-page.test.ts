import * as fc from "fast-check";
import { expect, test } from "vitest";
import { shiftPage } from "./shift-page.ts";
import { sampleReport } from "./shift-report.fixture.ts";

const plain = sampleReport(() => "plain");
/** Everything that is markup: tags with their attributes, in order. */
const tagsOf = (page: string) => page.match(/<[^>]*>?/g);
const visible = (page: string) =>
  page
    .replace(/<style>[^]*?<\/style>/, "")
    .replace(/<[^>]*>/g, " ")
    .replace(/\s+/g, " ");

const HOSTILE = [
  "<script>alert(1)</script>",
  "<img src=x onerror=alert(1)>",
  '"><svg onload=alert(1)>',
  "' onmouseover='alert(1)",
  "</bdi></td></table></main><style>*{display:none}</style>",
  "<!-- ",
  "]]>",
  "&lt;b&gt;&#60;",
  "javascript:alert(1)",
  "`${alert(1)}`",
  "a@<b>",
  "\u202egnp.exe\u202c",
  "\u0000\u0001\u001b[31m\u0007",
  "\u2028\u2029\r\n\t",
  "\u2066\u2069\u200f\ufeff",
  "\ud800",
  "x".repeat(70_000),
];
const hostileText = fc.oneof(
  fc.constantFrom(...HOSTILE),
  fc.string({ unit: "binary", maxLength: 40 }),
  fc.array(fc.constantFrom(...HOSTILE, ..."<>\"'&`=/@ ab"), { maxLength: 12 }).map((parts) => parts.join("")),
);

// What a text with @ is made of: it may be broken before its host.
const withoutBreaks = (tags: readonly string[] | null) => tags?.filter((tag) => tag !== "<wbr>");

test("no text from outside makes an element or an attribute", () => {
  const expected = withoutBreaks(tagsOf(shiftPage(plain)));
  fc.assert(
    fc.property(fc.infiniteStream(hostileText), (texts) => {
      const page = shiftPage(sampleReport(() => texts.next().value!));
      expect(withoutBreaks(tagsOf(page))).toEqual(expected);
      // Neither invisible characters nor those that turn the direction of text.
      expect(page.replace(/\n/g, "")).not.toMatch(/[\p{Cc}\p{Cf}\u2028\u2029]/u);
    }),
    { numRuns: 100 },
  );
});

test("a text is shown as it is written", () => {
  const page = shiftPage({ ...plain, site: `<b>"Tom" & 'Eva'</b>` });
  expect(page).toContain("<h1>&lt;b&gt;&quot;Tom&quot; &amp; &#39;Eva&#39;&lt;/b&gt;</h1>");
  expect(shiftPage({ ...plain, site: "東京 שלום é" })).toContain("<h1>東京 שלום é</h1>");
});

test("the alert's id stays in its link", () => {
  const [open] = plain.open.items;
  const page = shiftPage({ ...plain, open: { ...plain.open, items: [{ ...open!, alert_id: `"><b>&x=1#` }] } });
  expect(page).toContain('href="/alerts?alert=%22%3E%3Cb%3E%26x%3D1%23"');
});

test("the figures are said in words, with the change against the period before", () => {
  const text = visible(shiftPage(plain));
  for (const words of [
    "10 new alerts, 2 fewer than the 12 before. 10 were resolved: 4 true positives, 3 false positives, 2 benign, 1 duplicate. " +
      "40 alerts are still open, 1 of them critical, 7 not yet acknowledged, the oldest for 3 d 10 h. " +
      "1 source needs attention. Stored data of this period is missing. Retention is paused until an operator confirms it.",
    "Mean time to first look 12 min 5 min quicker than the 17 min before",
    "Mean time to closed 2 h 15 min no alert in the period before",
    "Open now 40 39 at the start",
    "Sun 15 Nov 2026, 07:00 to 19:00 (Europe/Berlin, UTC+1), 12 h",
    "and 23 more",
    "the 5 most severe of 40, oldest first",
    "and 3 more alerts of other rules",
    "5.0 MB in 120 flows; 4.0 MB before",
    "20% of the disk is free: 200 GB of 1.0 TB",
  ]) {
    expect(text).toContain(words);
  }
});

test("a quiet shift has a page too", () => {
  const none = { total: 0, previous: 0, by_severity: { critical: 0, high: 0, medium: 0, low: 0, info: 0 } };
  const mean = { value: null, previous: null };
  const text = visible(
    shiftPage({
      ...plain,
      alerts: {
        created: none,
        acknowledged: none,
        resolved: none,
        resolutions: { true_positive: 0, false_positive: 0, benign: 0, duplicate: 0 },
        open: { ...none, unacknowledged: 0, at_start: 0 },
        seconds_to_first_look: mean,
        seconds_to_resolve: mean,
      },
      handled: { total: 0, items: [] },
      open: { total: 0, oldest_created_at: null, items: [] },
      rules: { items: [], other_alerts: 0 },
      traffic: { ...plain.traffic, bytes: 0, flow_count: 0, previous_bytes: 0, intervals: [], talkers: [] },
      sources: { total: 0, in_trouble: 0, items: [] },
      losses: { ...plain.losses, dropped: [], missing: [], retention_paused: false, retention_messages: [] },
    }),
  );
  for (const words of [
    "No new alert, none before either. No alert is open.",
    "No alert was acknowledged or resolved.",
    "No rule made an alert.",
    "No flow was recorded.",
    "No device has sent anything since the service was started.",
    "Nothing was dropped or refused since the service was started.",
  ]) {
    expect(text).toContain(words);
  }
  expect(text).not.toMatch(/NaN|undefined|null|Infinity/);
});
