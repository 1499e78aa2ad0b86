import { SEVERITIES } from "../model/event.ts";
import { chartDefinitions, severityChart, severityMark, trafficChart, type ChartFrame } from "./report-charts.ts";
import { markup, type Markup, type MarkupPart } from "./markup.ts";
import { REPORT_STYLE } from "./report-style.ts";
import { changeOf, diskSentence, paceOf, resolutionWord, summarise } from "./report-summary.ts";
import { byteSize, counted, number, percent, timeSpan, ZoneClock } from "./report-words.ts";
import type { ShiftReport } from "./shift-report-schema.ts";

// The page of a shift report: complete in itself, without script, to read on a screen and to print.

/** What the sections share. */
interface PageContext {
  readonly report: ShiftReport;
  readonly clock: ZoneClock;
}

export function shiftPage(report: ShiftReport): string {
  const clock = new ZoneClock(report.timezone);
  const context = { report, clock };
  const [fromMs, toMs] = [Date.parse(report.from), Date.parse(report.to)];
  const range = clock.range(fromMs, toMs);
  // The style sheet is inserted into finished text: its hash in the policy is that of these characters.
  const head = markup`<meta charset="utf-8" /><meta name="viewport" content="width=device-width, initial-scale=1" />
    <title>Shift report, ${report.site}, ${range}</title>`;
  const body = markup`<body>
    ${chartDefinitions()}
    <header>
      <p class="kind">Shift report</p>
      <h1>${report.site}</h1>
      <p>${timeElement(report.from, range)} (${clock.zoneIn(fromMs, toMs)}), ${timeSpan((toMs - fromMs) / 1000)}</p>
    </header>
    <main>
      <p class="summary">${summarise(report).map((sentence) => markup`${sentence} `)}</p>
      ${figures(context)} ${bySeverity(context)} ${trend(context)} ${handled(context)} ${stillOpen(context)}
      ${noisiestRules(context)} ${traffic(context)} ${sources(context)} ${losses(context)}
    </main>
    <footer>
      Made by Tocsin, ${timeElement(report.generated_at, clock.moment(Date.parse(report.generated_at)))}. “Before” is
      the period of the same length directly before, from ${clock.moment(Date.parse(report.previous_from))}. “Open” and
      the state of the sources are as of now.
    </footer>
  </body>`;
  return `<!doctype html>\n<html lang="en">\n<head>${head.text}<style>${REPORT_STYLE}</style></head>\n${body.text}\n</html>\n`;
}

function timeElement(iso: string, text: string): Markup {
  return markup`<time datetime="${iso}">${text}</time>`;
}

function moment({ clock }: PageContext, iso: string): Markup {
  return timeElement(iso, clock.moment(Date.parse(iso)));
}

/** A short section stays on one page. */
function shortSection(title: string, note: string, content: MarkupPart): Markup {
  return markup`<div class="whole">${section(title, note, content)}</div>`;
}

function section(title: string, note: string, content: MarkupPart): Markup {
  const small = note === "" ? "" : markup` <small>${note}</small>`;
  return markup`<section>
    <h2>${title}${small}</h2>
    ${content}
  </section>`;
}

interface TableColumn {
  readonly name: string;
  readonly isNumber?: true;
}

/** A table whose rows are stacked on a narrow screen. */
function listTable(names: readonly string[], rows: readonly Markup[]): Markup {
  return markup`<div class="list">${table(
    names.map((name) => ({ name })),
    rows,
  )}</div>`;
}

function table(columns: readonly TableColumn[], rows: readonly Markup[]): Markup {
  const heads = columns.map(({ name, isNumber }) =>
    isNumber ? markup`<th scope="col" class="number">${name}</th>` : markup`<th scope="col">${name}</th>`,
  );
  return markup`<table>
    <thead>
      <tr>
        ${heads}
      </tr>
    </thead>
    <tbody>
      ${rows.map(
        (row) =>
          markup`<tr>
            ${row}
          </tr>`,
      )}
    </tbody>
  </table>`;
}

function more(total: number, shown: number): MarkupPart {
  return total > shown ? markup`<p class="more">and ${number(total - shown)} more</p>` : "";
}

function alertLink({ alert_id, title }: { readonly alert_id: string; readonly title: string }): Markup {
  return markup`<a href="/alerts?alert=${encodeURIComponent(alert_id)}"><bdi>${title}</bdi></a>`;
}

/** An address of mail is best broken before its host. */
function person(name: string): Markup {
  const at = name.lastIndexOf("@");
  return at <= 0 ? markup`<bdi>${name}</bdi>` : markup`<bdi>${name.slice(0, at)}<wbr>${name.slice(at)}</bdi>`;
}

function figures({ report: { alerts } }: PageContext): Markup {
  const { created, acknowledged, resolved, open } = alerts;
  const mean = (value: number | null) => (value === null ? "–" : timeSpan(value));
  const tiles: [string, string, string][] = [
    ["New alerts", number(created.total), changeOf(created)],
    ["Acknowledged", number(acknowledged.total), changeOf(acknowledged)],
    ["Resolved", number(resolved.total), changeOf(resolved)],
    [
      "Open now",
      number(open.total),
      open.total === open.at_start ? "as many as at the start" : `${number(open.at_start)} at the start`,
    ],
    ["Mean time to first look", mean(alerts.seconds_to_first_look.value), paceOf(alerts.seconds_to_first_look)],
    ["Mean time to closed", mean(alerts.seconds_to_resolve.value), paceOf(alerts.seconds_to_resolve)],
  ];
  return markup`<dl class="figures">
    ${tiles.map(
      ([name, value, change]) =>
        markup`<div>
          <dt>${name}</dt>
          <dd>${value}</dd>
          <dd class="change">${change}</dd>
        </div>`,
    )}
  </dl>`;
}

function bySeverity({ report: { alerts } }: PageContext): Markup {
  const rows = [
    ["New", alerts.created],
    ["Acknowledged", alerts.acknowledged],
    ["Resolved", alerts.resolved],
    ["Open now", alerts.open],
  ] as const;
  const heads = SEVERITIES.map((severity) => markup`<th scope="col" class="number">${severityMark(severity)}</th>`);
  const body = rows.map(([name, { total, by_severity }]) => {
    const cells = SEVERITIES.map((severity) => countCell(by_severity[severity]));
    return markup`<tr>
      <th scope="row">${name}</th>
      ${cells}${countCell(total)}
    </tr>`;
  });
  return shortSection(
    "Alerts by severity",
    "",
    markup`<table class="even">
      <thead>
        <tr>
          <th scope="col"><span class="unseen">alerts</span></th>
          ${heads}
          <th scope="col" class="number">all</th>
        </tr>
      </thead>
      <tbody>
        ${body}
      </tbody>
    </table>`,
  );
}

function countCell(count: number): Markup {
  return count === 0 ? markup`<td class="number zero">0</td>` : markup`<td class="number">${number(count)}</td>`;
}

function frameOf({ report, clock }: PageContext, intervalSeconds: number, label: string): ChartFrame {
  const [fromMs, toMs] = [Date.parse(report.from), Date.parse(report.to)];
  return { fromMs, toMs, intervalMs: intervalSeconds * 1000, clock, label };
}

function trend(context: PageContext): Markup {
  const { trend, alerts } = context.report;
  const { by_severity } = alerts.created;
  const every = timeSpan(trend.interval_seconds);
  if (alerts.created.total === 0) return section("New alerts over time", "", markup`<p class="note">None.</p>`);
  const frame = frameOf(
    context,
    trend.interval_seconds,
    `New alerts every ${every}, by severity; the table below has the numbers`,
  );
  const intervals = trend.intervals.map((interval) => ({
    startMs: Date.parse(interval.from),
    counts: interval.by_severity,
  }));
  const legend = SEVERITIES.map(
    (severity) =>
      markup`<li>
        <svg class="swatch" aria-hidden="true" width="14" height="12">
          <rect class="line-${severity}" fill="url(#fill-${severity})" x="0.5" y="0.5" width="13" height="11" /></svg
        >${severity} ${number(by_severity[severity])}
      </li>`,
  );
  const rows = trend.intervals
    .filter(({ by_severity: counts }) => SEVERITIES.some((severity) => counts[severity] > 0))
    .map(
      ({ from, by_severity: counts }) =>
        markup`<td class="nowrap">${moment(context, from)}</td>
          ${SEVERITIES.map((severity) => countCell(counts[severity]))}`,
    );
  const columns = [{ name: "From" }, ...SEVERITIES.map((name) => ({ name, isNumber: true as const }))];
  return shortSection(
    "New alerts over time",
    `every ${every}`,
    markup`<figure>
        ${severityChart(frame, intervals)}
        <ul class="legend">
          ${legend}
        </ul>
      </figure>
      <details>
        <summary>As a table</summary>
        ${table(columns, rows)}
      </details>`,
  );
}

function handled(context: PageContext): Markup {
  const { items, total } = context.report.handled;
  const rows = items.map((item) => {
    const { at, by, severity, last_comment, action, resolution } = item;
    const isOwn = last_comment?.author === by && last_comment.at === at;
    const author =
      last_comment && !isOwn ? markup` ${person(last_comment.author)}, ${moment(context, last_comment.at)}` : "";
    const comment = last_comment ? markup`<p class="comment">“<bdi>${last_comment.text}</bdi>”${author}</p>` : "";
    const outcome = action === "resolved" && resolution ? resolutionWord(resolution) : action;
    return markup`<td class="nowrap">${moment(context, at)}</td>
      <td>${severityMark(severity)}</td>
      <td class="title">${alertLink(item)}${comment}</td>
      <td class="person">${by === null ? "–" : person(by)}</td>
      <td class="nowrap">${outcome}</td>`;
  });
  const columns = ["Time", "Severity", "Alert and last comment", "Who", "Outcome"];
  const content =
    total === 0
      ? markup`<p class="note">No alert was acknowledged or resolved.</p>`
      : markup`${listTable(columns, rows)}${more(total, items.length)}`;
  return section("Handled in this period", total === 0 ? "" : counted(total, "alert"), content);
}

function stillOpen(context: PageContext): Markup {
  const { open, generated_at } = context.report;
  const rows = open.items.map((item) => {
    const { created_at, severity, assignee, status } = item;
    const age = Math.max(0, Date.parse(generated_at) - Date.parse(created_at)) / 1000;
    return markup`<td class="nowrap">${moment(context, created_at)}</td>
      <td class="nowrap">${timeSpan(age)}</td>
      <td>${severityMark(severity)}</td>
      <td class="title">${alertLink(item)}</td>
      <td class="person">${assignee === null ? "nobody" : person(assignee)}</td>
      <td class="nowrap">${status}</td>`;
  });
  const columns = ["Since", "Age", "Severity", "Alert", "Assignee", "Status"];
  const content =
    open.total === 0
      ? markup`<p class="note">No alert is open.</p>`
      : markup`${listTable(columns, rows)}${more(open.total, open.items.length)}`;
  const isCut = open.total > open.items.length;
  const shown = isCut
    ? `the ${number(open.items.length)} most severe of ${number(open.total)}`
    : counted(open.total, "alert");
  return section("Still open", open.total === 0 ? "" : `${shown}, oldest first`, content);
}

function noisiestRules({ report: { rules } }: PageContext): Markup {
  const { items, other_alerts } = rules;
  if (items.length === 0) return section("Noisiest rules", "", markup`<p class="note">No rule made an alert.</p>`);
  const rows = items.map(({ rule_name, alerts, false_positive_share: share }) => {
    const text = share === null ? "none resolved" : percent(share);
    return markup`<td><bdi>${rule_name}</bdi></td>
      ${countCell(alerts)}
      <td class="number">${text}</td>`;
  });
  const columns = [
    { name: "Rule" },
    { name: "New alerts", isNumber: true },
    { name: "False positives, 90 days", isNumber: true },
  ] as const;
  const others =
    other_alerts > 0 ? markup`<p class="more">and ${counted(other_alerts, "more alert")} of other rules</p>` : "";
  return shortSection("Noisiest rules", "", markup`${table(columns, rows)}${others}`);
}

function traffic(context: PageContext): Markup {
  const { traffic } = context.report;
  const { bytes, flow_count, previous_bytes, interval_seconds, intervals, talkers } = traffic;
  if (flow_count === 0 && previous_bytes === 0) {
    return section("Network traffic", "", markup`<p class="note">No flow was recorded.</p>`);
  }
  const every = timeSpan(interval_seconds);
  const points = intervals.map((interval) => ({
    startMs: Date.parse(interval.from),
    bytes: interval.bytes,
    previousBytes: interval.previous_bytes,
  }));
  const label = `Traffic every ${every}: ${byteSize(bytes)} in all, ${byteSize(previous_bytes)} in the period before`;
  const chart = markup`<figure>
    ${trafficChart(frameOf(context, interval_seconds, label), points)}
    <figcaption>Bytes every ${every}; dashed: the period before</figcaption>
  </figure>`;
  const hasNames = talkers.some(({ hostname }) => hostname !== null);
  const rows = talkers.map(({ address, hostname, bytes: own, flow_count: flows }) => {
    const share = bytes === 0 ? "" : percent(own / bytes);
    const name = hasNames ? markup`<td><bdi>${hostname ?? ""}</bdi></td>` : "";
    return markup`<td class="address">${address}</td>
      ${name}
      <td class="number">${byteSize(own)}</td>
      <td class="number">${share}</td>
      ${countCell(flows)}`;
  });
  const columns = [
    { name: "Top talkers" },
    ...(hasNames ? [{ name: "Host name" }] : []),
    ...["Sent", "Share", "Flows"].map((name) => ({ name, isNumber: true as const })),
  ];
  const note = `${byteSize(bytes)} in ${counted(flow_count, "flow")}; ${byteSize(previous_bytes)} before`;
  return shortSection("Network traffic", note, markup`${chart}${talkers.length > 0 ? table(columns, rows) : ""}`);
}

function sources(context: PageContext): Markup {
  const { items, total, in_trouble } = context.report.sources;
  if (total === 0) {
    const text = "No device has sent anything since the service was started.";
    return section("Sources", "", markup`<p class="note">${text}</p>`);
  }
  const rows = items.map(({ name, kind, healthy, per_minute, last_seen, summary }) => {
    const state = healthy ? markup`<td>${summary}</td>` : markup`<td class="trouble">! ${summary}</td>`;
    const seen = last_seen === null ? "–" : moment(context, last_seen);
    return markup`<td class="address">${name}</td>
      <td>${kind}</td>
      <td class="number">${number(per_minute)}</td>
      <td class="nowrap">${seen}</td>
      ${state}`;
  });
  const columns = [
    { name: "Source" },
    { name: "Kind" },
    { name: "Per minute", isNumber: true },
    { name: "Last seen" },
    { name: "State" },
  ] as const;
  const note =
    in_trouble === 0 ? `all ${number(total)} in order` : `${number(in_trouble)} of ${number(total)} in trouble`;
  return section("Sources", note, markup`${table(columns, rows)}${more(total, items.length)}`);
}

function losses({ report: { losses } }: PageContext): Markup {
  const { dropped, missing, retention_paused, retention_messages, disk } = losses;
  const rows = dropped.map(
    ({ what, count }) =>
      markup`<td>${what}</td>
        ${countCell(count)}`,
  );
  const columns = [
    { name: "Dropped or refused since the service was started" },
    { name: "Count", isNumber: true },
  ] as const;
  const items = [
    ...missing.map((message) => markup`<li class="trouble">Missing: ${message}.</li>`),
    ...(retention_paused
      ? [markup`<li class="trouble">Retention is paused: nothing is removed until an operator confirms it.</li>`]
      : []),
    ...retention_messages.map((message) => markup`<li>${message}</li>`),
    markup`<li>
      ${diskSentence(losses)}: ${byteSize(disk.free_bytes)} of ${byteSize(disk.total_bytes)}. The data of the service
      takes ${byteSize(disk.used_bytes)}.
    </li>`,
  ];
  const table_ =
    rows.length > 0
      ? table(columns, rows)
      : markup`<p class="note">Nothing was dropped or refused since the service was started.</p>`;
  return shortSection(
    "Losses and space",
    "",
    markup`${table_}
      <ul class="plain">
        ${items}
      </ul>`,
  );
}
