// The style sheet of the report: inline, so that the page loads nothing.
#pragma once

#include <string_view>

namespace attest {

inline constexpr std::string_view html_style = R"css(
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #57606a; --paper: #ffffff; --panel: #f6f8fa; --line: #d0d7de;
  --held: #116329; --held-bg: #dafbe1; --violated: #a40e26; --violated-bg: #ffebe9; --inconclusive: #7a4d00;
  --inconclusive-bg: #fff8c5; --skipped: #57606a; --skipped-bg: #eaeef2; --bar: #0550ae; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --soft: #9198a1; --paper: #0d1117; --panel: #161b22;
  --line: #3d444d; --held: #56d364; --held-bg: #12261e; --violated: #ff9492; --violated-bg: #301414; --inconclusive: #e3b341;
  --inconclusive-bg: #272115; --skipped: #9198a1; --skipped-bg: #21262d; --bar: #79c0ff; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 72rem; margin: 0 auto; padding: 1rem 1.25rem 4rem; }
h1 { font-size: 1.6rem; margin: .5rem 0; } h2 { font-size: 1.25rem; margin: 2.2rem 0 .4rem; border-bottom: 1px solid var(--line); }
nav { display: flex; flex-wrap: wrap; gap: .2rem 1rem; font-size: .92rem; } .counts { margin: .4rem 0; }
main p { overflow-wrap: anywhere; }
h3 { font-size: 1.05rem; margin: 1.6rem 0 .4rem; overflow-wrap: anywhere; }
.headline { font-size: 1.1rem; } .note, figcaption { color: var(--soft); font-size: .9rem; margin: .2rem 0 .6rem; }
.warning { background: var(--inconclusive-bg); color: var(--inconclusive); padding: .5rem .75rem; border-radius: 6px; }
.scroll { overflow-x: auto; max-width: 100%; } .scroll:focus-visible { outline: 2px solid var(--bar); }
table { border-collapse: collapse; font-size: .92rem; margin: .4rem 0; }
caption { position: sticky; left: 0; width: min(100%, 92vw); text-align: left; color: var(--soft); font-size: .9rem; padding-bottom: .3rem; }
th, td { padding: .3rem .65rem; border: 1px solid var(--line); text-align: left; vertical-align: top; }
thead th { background: var(--panel); font-weight: 600; } tbody th { font-weight: 500; overflow-wrap: anywhere; min-width: 9rem; }
.dense { font-size: .77rem; } .dense th, .dense td { padding: .2rem .22rem; } .dense tbody th { min-width: 6.6rem; } .dense td { white-space: nowrap; }
.dense th:not([aria-sort]) button, .plain th:not([aria-sort]) button { text-decoration: underline dotted; text-underline-offset: 3px; }
[hidden] { display: none !important; }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
th button { font: inherit; color: inherit; background: none; border: 0; padding: 0; margin: 0; text-align: inherit; cursor: pointer; }
table:not(.dense, .plain) th button::after { content: "\00a0\2195"; color: var(--soft); font-weight: 400; opacity: .6; }
table th[aria-sort] button::after { color: var(--bar); opacity: 1; } table th[aria-sort=ascending] button::after { content: "\00a0\2191"; }
table th[aria-sort=descending] button::after { content: "\00a0\2193"; }
button:focus-visible, input:focus-visible, select:focus-visible { outline: 2px solid var(--bar); outline-offset: 1px; }
.filter { position: sticky; top: 0; z-index: 3; display: flex; flex-wrap: wrap; gap: .3rem 1rem; align-items: center; padding: .45rem 0;
  margin-top: .5rem; background: var(--paper); border-bottom: 1px solid var(--line); font-size: .88rem; }
.filter input, .filter select, .filter button, .copy { font: inherit; color: inherit; background: var(--panel); border: 1px solid var(--line);
  border-radius: 5px; padding: .1rem .4rem; } .shown { color: var(--soft); }
.copy { font-size: .78rem; cursor: pointer; margin: 0 0 .3rem; }
details.line > summary { white-space: nowrap; } details.line code { display: block; white-space: normal; width: min(24rem, 60vw); }
div.matrix { max-height: 85vh; overflow: auto; } table.matrix { font-size: .8rem; border-collapse: separate; border-spacing: 0; margin: 0; }
.matrix th, .matrix td { padding: .15rem .35rem; border-width: 0 1px 1px 0; } .matrix td { white-space: nowrap; font-variant-numeric: tabular-nums; }
.matrix thead th { position: sticky; top: 0; z-index: 1; vertical-align: bottom; max-width: 10rem; }
.matrix tbody th { position: sticky; left: 0; background: var(--paper); min-width: 11rem; }
.matrix thead th:first-child { left: 0; z-index: 2; }
.upright span { writing-mode: vertical-rl; transform: rotate(180deg); max-height: 12rem; overflow-wrap: anywhere; }
td.held { color: var(--held); background: var(--held-bg); } td.violated { color: var(--violated); background: var(--violated-bg); font-weight: 600; }
td.inconclusive { color: var(--inconclusive); background: var(--inconclusive-bg); } td.skipped { color: var(--skipped); }
.strip td { white-space: nowrap; } table.case td:nth-child(n+3) { min-width: 12rem; } .finding dl { margin: .3rem 0; font-size: .92rem; }
details.kernel { border-top: 1px solid var(--line); padding-top: .2rem; } details.kernel > summary h3 { display: inline-block; margin: .3rem 0; }
details.kernel { content-visibility: auto; contain-intrinsic-size: auto 2.6rem; }
section, article, details { scroll-margin-top: 3.5rem; }
.bits { margin-top: .8rem; }
.tables { display: flex; flex-wrap: wrap; gap: 1rem 1.5rem; align-items: flex-start; margin: .6rem 0 1rem; }
.number { text-align: right; font-variant-numeric: tabular-nums; } td.number { white-space: nowrap; }
.figure, .reach { font-variant-numeric: tabular-nums; color: var(--soft); } .reach { font-size: .8rem; } .none { color: var(--soft); font-size: .85rem; }
.badge { display: inline-block; padding: 0 .5rem; border-radius: 1rem; font-size: .85rem; font-weight: 600; white-space: nowrap; }
.badge.held { color: var(--held); background: var(--held-bg); } .badge.violated { color: var(--violated); background: var(--violated-bg); }
.badge.inconclusive { color: var(--inconclusive); background: var(--inconclusive-bg); }
.badge.skipped, .badge.excused { color: var(--skipped); background: var(--skipped-bg); }
a { color: inherit; } a:focus-visible, summary:focus-visible { outline: 2px solid var(--bar); outline-offset: 2px; }
.dtype { color: var(--soft); font-weight: 400; }
pre, code { font: .85rem/1.45 ui-monospace, monospace; overflow-wrap: anywhere; } pre { background: var(--panel); padding: .6rem .75rem;
  border-radius: 6px; white-space: pre-wrap; margin: .4rem 0; }
.finding { border-left: 3px solid var(--violated); padding: .1rem 0 .1rem .9rem; margin: .8rem 0; } .finding p { margin: .25rem 0; overflow-wrap: anywhere; }
figure { margin: .8rem 0; max-width: 40rem; } .plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 27rem), 1fr)); gap: 0 1.5rem; } .plot { max-width: 46rem; min-width: 0; margin: .2rem 0; break-inside: avoid-page; } .plot h3 { margin-bottom: .2rem; } svg { width: 100%; height: auto; display: block; }
svg .bar { fill: var(--bar); } svg .over { fill: var(--violated); } svg .limit { stroke: var(--violated); stroke-dasharray: 3 3; }
svg .axis { stroke: var(--line); } figure:not(.plot) svg text { fill: var(--soft); font: 12px system-ui, sans-serif; }
.reasons { margin: .3rem 0; padding-left: 1.2rem; overflow-wrap: anywhere; } dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; }
dt { color: var(--soft); grid-column: 1; } dd { margin: 0; grid-column: 2; overflow-wrap: anywhere; }
details { margin: .4rem 0; } details details { margin-left: 1rem; } td details { margin: 0; } summary { cursor: pointer; overflow-wrap: anywhere; }
@media (max-width: 40rem) { main { padding: .5rem .75rem 3rem; } dl { grid-template-columns: 1fr; } dd { grid-column: 1; margin-bottom: .3rem; } }
@media (max-width: 40rem) { .plot svg { min-width: 30rem; } th, td { padding: .25rem .4rem; } tbody th { min-width: 6.5rem; } table { font-size: .85rem; }
  .filter label { display: flex; gap: .4rem; align-items: baseline; } }
@media (max-width: 40rem), (max-height: 30rem) { .filter { position: static; } section, article, details { scroll-margin-top: .5rem; } }
@media print { main { max-width: none; padding: 0; } details.kernel, caption { position: static; } .scroll, div.matrix { overflow: visible; max-height: none; } .filter, .copy, nav { display: none; }
  th button::after { content: none !important; } thead { display: table-header-group; } tr { break-inside: avoid; } .matrix th { position: static !important; }
  table.matrix { font-size: .5rem; table-layout: fixed; width: 100%; } .matrix th, .matrix td { padding: .1rem; white-space: normal !important; min-width: 0 !important; overflow-wrap: anywhere; }
  .matrix th:first-child { width: 16%; } .upright span { writing-mode: horizontal-tb; transform: none; } th button { display: contents; }
  table:not(.matrix) { font-size: .7rem; } body { font-size: 11pt; } details.kernel { content-visibility: visible; } h2, h3 { break-after: avoid-page; } .finding { break-inside: avoid-page; } pre { border: 1px solid var(--line); } }
@media print { details::details-content { content-visibility: visible !important; } }
)css";

}  // namespace attest
