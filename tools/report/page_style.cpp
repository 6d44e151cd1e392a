#include "headrace/tools/report/page_style.h"

namespace headrace::tools {

const char* const kPageStyle = R"(
:root {
  color-scheme: light dark;
  --paper: #ffffff; --ink: #1b1f24; --soft: #57606a; --rule: #d8dee4; --panel: #f6f8fa;
  --c0: #0072b2; --c1: #d55e00; --c2: #009e73; --c3: #cc79a7; --c4: #a67c00; --limit: #d55e00;
}
@media screen and (prefers-color-scheme: dark) {
  :root {
    --paper: #14171a; --ink: #e8eaed; --soft: #a3abb4; --rule: #3a4149; --panel: #1e2226;
    --c0: #56b4e9; --c1: #e69f00; --c2: #2cc29b; --c3: #e3a5c7; --c4: #f0e442; --limit: #e69f00;
  }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 14px; max-width: 1560px; background: var(--paper); color: var(--ink);
  font: 15px/1.45 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; margin: 0 0 2px; line-height: 1.2; }
h2 { font-size: 1.15rem; margin: 28px 0 8px; border-bottom: 1px solid var(--rule); padding-bottom: 4px; }
p { margin: 4px 0 8px; max-width: 80em; }
.soft { color: var(--soft); }
.notes { border-left: 4px solid var(--limit); background: var(--panel); padding: 8px 12px; margin: 12px 0; }
.notes p { margin: 2px 0; }
.cards { display: flex; flex-wrap: wrap; gap: 10px; margin: 14px 0; }
.card { flex: 1 1 140px; background: var(--panel); border-radius: 8px; padding: 8px 12px; }
.card b { display: block; font-size: 1.35rem; font-variant-numeric: tabular-nums; }
.card span { color: var(--soft); font-size: .85rem; }
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(340px, 100%), 1fr)); gap: 14px; }
figure { min-width: 0; max-width: 620px; margin: 0; break-inside: avoid; }
figcaption { font-weight: 600; }
svg { font: 12px system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
svg text { fill: var(--ink); }
svg .tick, svg .axis { fill: var(--soft); font-size: 11px; }
svg .name { font-size: 11.5px; }
.chart { display: block; width: 100%; height: auto; }
.grid { stroke: var(--rule); stroke-width: 1; }
.mark { stroke: var(--soft); stroke-width: 1; }
.line { fill: none; stroke-width: 2; stroke-linejoin: round; stroke-linecap: round; }
.line.c0 { stroke: var(--c0); } .line.c1 { stroke: var(--c1); stroke-dasharray: 7 4; }
.line.c2 { stroke: var(--c2); stroke-dasharray: 2 4; } .line.c3 { stroke: var(--c3); stroke-dasharray: 9 3 2 3; }
.line.c4 { stroke: var(--c4); stroke-dasharray: 12 3; }
.dot.c0, .area.c0 { fill: var(--c0); } .dot.c1, .area.c1 { fill: var(--c1); }
.dot.c2, .area.c2 { fill: var(--c2); } .dot.c3, .area.c3 { fill: var(--c3); }
.dot.c4, .area.c4 { fill: var(--c4); }
.hit { fill: transparent; }
.pipeline, .shared { display: flex; flex-wrap: wrap; align-items: flex-end; gap: 6px 0; }
.shared { border: 1px dashed var(--soft); border-radius: 10px; padding: 4px 4px 6px; margin-right: 6px; }
.shared p { width: 0; min-width: calc(100% - 8px); margin: 0 4px; font-size: .85rem; color: var(--soft); }
.stage { flex: none; max-width: 100%; }
.box { fill: var(--panel); stroke: var(--soft); stroke-width: 1; }
.box.limit { stroke: var(--limit); stroke-width: 3; }
.stage-name { font-weight: 600; font-size: 12px; }
.rate { font-size: 16px; font-weight: 600; }
.limit-name { font-size: 12px; font-weight: 700; }
.bar { fill: var(--rule); }
.busy { fill: var(--c0); } .busy.limit { fill: var(--limit); }
.arrow { fill: none; stroke: var(--soft); stroke-width: 1.6; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .9rem; }
th, td { padding: 3px 10px; border-bottom: 1px solid var(--rule); text-align: right; white-space: nowrap; }
th { color: var(--soft); font-weight: 600; vertical-align: bottom; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 3px 14px; margin: 8px 0; }
dt { color: var(--soft); }
dd { margin: 0; }
pre { overflow-x: auto; background: var(--panel); border-radius: 8px; padding: 10px; font-size: .82rem; overflow-wrap: normal; }
summary { cursor: pointer; font-weight: 600; padding: 4px 0; }
.matrix { border-collapse: collapse; font-size: .8rem; font-variant-numeric: tabular-nums; }
.matrix th { font-weight: 500; text-align: right; padding: 1px 6px; white-space: nowrap; }
.matrix thead th { writing-mode: vertical-rl; text-align: left; padding: 6px 1px; }
.matrix td { text-align: center; min-width: 1.9em; padding: 1px 3px; border: 1px solid var(--rule); }
@media print {
  body { max-width: none; padding: 0; font-size: 9.5pt; }
  figure { flex-basis: 220px; }
  .scroll, pre { overflow: visible; }
  table { font-size: 8pt; }
  th, td { padding: 2px 5px; white-space: normal; }
  pre { white-space: pre-wrap; font-size: 6.5pt; }
  section, .card, .stage { break-inside: avoid-page; }
  .card, .box, .notes, .dot, .area, .busy, .bar { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
)";

}  // namespace headrace::tools
