import { hash } from "node:crypto";

// The style sheet of reports, which is the same for all: the policy of the page names it by its hash, so that no other
// style, script or resource has an effect.

export const REPORT_STYLE = `
:root {
  color-scheme: light dark;
  --paper: #fdfcfa; --ink: #151f27; --ink2: #424e56; --line: #e4e3dc; --line2: #bebeb6; --accent: #006b65;
  --critical: #b80049; --high: #983a14; --medium: #806416; --low: #004e8f; --info: #5a6266;
  --mark-critical: #a40044; --mark-high: #cb5a00; --mark-medium: #a99118; --mark-low: #1764a0; --mark-info: #6e767b;
}
@media screen and (prefers-color-scheme: dark) {
  :root {
    --paper: #0d1419; --ink: #ebf1f4; --ink2: #b5c0c5; --line: #1e282e; --line2: #344048; --accent: #62d1c0;
    --critical: #fa487c; --high: #fe9b61; --medium: #f6e96d; --low: #67a0da; --info: #98a0a5;
    --mark-critical: #fa487c; --mark-high: #fe9b61; --mark-medium: #f6e96d; --mark-low: #67a0da; --mark-info: #98a0a5;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 32px 24px 48px; max-width: 860px; background: var(--paper); color: var(--ink);
  font: 14px/1.45 Inter, system-ui, "Segoe UI", "Helvetica Neue", Arial, sans-serif; font-variant-numeric: tabular-nums;
  overflow-wrap: anywhere;
}
.unseen { position: absolute; clip-path: inset(50%); width: 1px; height: 1px; overflow: hidden; }
header { border-bottom: 2px solid var(--ink); padding-bottom: 12px; }
header p { margin: 0; color: var(--ink2); }
h1 { margin: 2px 0 4px; font-size: 24px; line-height: 1.2; }
.kind { font-size: 12px; font-weight: 600; letter-spacing: 0.06em; text-transform: uppercase; }
h2 { margin: 28px 0 8px; font-size: 16px; break-after: avoid; }
h2 small { font-size: 13px; font-weight: 400; color: var(--ink2); }
section > p { margin: 6px 0; }
.summary { margin: 16px 0 0; font-size: 15px; max-width: 72ch; }
.note, .more, figcaption { color: var(--ink2); font-size: 12.5px; }
.figures { display: grid; grid-template-columns: repeat(3, 1fr); margin: 20px 0 0; border-top: 1px solid var(--line2); border-left: 1px solid var(--line2); break-inside: avoid; }
.figures > div { padding: 8px 12px 9px; border-right: 1px solid var(--line2); border-bottom: 1px solid var(--line2); }
dt { color: var(--ink2); font-size: 12.5px; }
dd { margin: 0; }
.figures dd:first-of-type { font-size: 24px; font-weight: 600; line-height: 1.25; }
.figures .change { font-size: 12.5px; color: var(--ink2); }
table { width: 100%; border-collapse: collapse; font-size: 13px; }
thead { display: table-header-group; }
tr { break-inside: avoid; }
th { text-align: left; font-weight: 600; font-size: 12px; color: var(--ink2); border-bottom: 1px solid var(--ink); padding: 4px 10px 4px 0; vertical-align: bottom; }
td { border-bottom: 1px solid var(--line); padding: 5px 10px 5px 0; vertical-align: top; }
tbody th { font-weight: 400; font-size: 13px; color: var(--ink); border-bottom: 1px solid var(--line); vertical-align: top; }
th:last-child, td:last-child { padding-right: 0; }
.number { text-align: right; white-space: nowrap; }
.nowrap { white-space: nowrap; overflow-wrap: normal; }
.person { min-width: 9em; }
.even { table-layout: fixed; }
figure + table { margin-top: 10px; }
.zero { color: var(--ink2); }
.comment { margin: 2px 0 0; color: var(--ink2); font-size: 12.5px; }
.trouble { font-weight: 600; }
.address { font-family: "JetBrains Mono", ui-monospace, Menlo, Consolas, monospace; font-size: 12px; }
a { color: inherit; text-decoration-color: var(--line2); text-underline-offset: 2px; }
a:hover, a:focus-visible { text-decoration-color: currentcolor; }
.severity { white-space: nowrap; overflow-wrap: normal; }
.mark { margin-right: 6px; vertical-align: -1px; fill: currentcolor; }
.on { fill: currentcolor; }
.off { fill: currentcolor; opacity: 0.25; }
.text-critical { color: var(--critical); font-weight: 600; } .text-high { color: var(--high); } .text-medium { color: var(--medium); }
.text-low { color: var(--low); } .text-info { color: var(--info); }
.ink-critical { fill: var(--mark-critical); } .ink-high { fill: var(--mark-high); } .ink-medium { fill: var(--mark-medium); }
.ink-low { fill: var(--mark-low); } .ink-info { fill: var(--mark-info); }
.bar, .swatch rect { stroke-width: 0.8; }
.line-critical { stroke: var(--mark-critical); } .line-high { stroke: var(--mark-high); } .line-medium { stroke: var(--mark-medium); }
.line-low { stroke: var(--mark-low); } .line-info { stroke: var(--mark-info); }
figure { margin: 0; }
.whole { break-inside: avoid; }
.chart { display: block; width: 100%; height: auto; }
.label { font-size: 10.5px; fill: var(--ink2); }
.axis { stroke: var(--line2); } .grid { stroke: var(--line); }
.area { fill: var(--accent); fill-opacity: 0.25; stroke: var(--accent); stroke-width: 1.2; }
.before { fill: none; stroke: var(--ink2); stroke-width: 1; stroke-dasharray: 4 3; }
.legend { display: flex; flex-wrap: wrap; gap: 2px 16px; margin: 6px 0 0; padding: 0; list-style: none; font-size: 12.5px; }
.swatch { margin-right: 6px; vertical-align: -2px; overflow: visible; }
.definitions { position: absolute; }
details { margin-top: 4px; font-size: 12.5px; }
summary { cursor: pointer; color: var(--ink2); }
details table { width: auto; }
ul.plain { margin: 6px 0; padding-left: 18px; }
footer { margin-top: 32px; padding-top: 8px; border-top: 1px solid var(--line2); color: var(--ink2); font-size: 12px; }
@media (max-width: 620px) {
  body { padding: 20px 14px 32px; }
  .figures { grid-template-columns: repeat(2, 1fr); }
  .even .mark { display: none; }
  .even th { font-size: 11px; overflow-wrap: normal; }
  .even th:first-child { width: 26%; }
  .list thead { position: absolute; clip-path: inset(50%); }
  .list tr { display: block; padding: 8px 0; border-bottom: 1px solid var(--line); }
  .list td { display: inline-block; padding: 0 10px 0 0; border: 0; min-width: 0; }
  .list .title { display: block; padding: 2px 0; }
}
@page { size: A4; margin: 15mm 15mm 17mm; @bottom-right { content: counter(page) " / " counter(pages); font: 9pt system-ui, Arial, sans-serif; } }
@media print {
  :root { --paper: #fff; --ink: #000; --ink2: #333; --line: #ccc; --line2: #777; --accent: #00524d; --critical: #000; --high: #000; --medium: #000; --low: #000; --info: #000; }
  body { max-width: none; padding: 0; font-size: 9.5pt; }
  h1 { font-size: 19pt; } h2 { margin-top: 18pt; font-size: 12.5pt; } h2 small { font-size: 10pt; }
  .summary { font-size: 11pt; max-width: none; }
  .figures { grid-template-columns: repeat(3, 1fr); }
  .figures dd:first-of-type { font-size: 17pt; }
  table, tbody th { font-size: 8.8pt; } th { font-size: 8.5pt; }
  td, tbody th { padding-top: 3px; padding-bottom: 3px; }
  .note, .more, .comment, .figures .change, figcaption, .legend, dt, footer { font-size: 8.5pt; }
  .address { font-size: 8.2pt; }
  a { text-decoration: none; }
  details { display: none; }
  p { orphans: 3; widows: 3; }
}
`;

export const REPORT_POLICY =
  `default-src 'none'; style-src 'sha256-${hash("sha256", REPORT_STYLE, "base64")}'; ` +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
