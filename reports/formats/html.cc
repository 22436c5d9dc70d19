#include "reports/formats/html.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "core/support/folder.h"
#include "reports/page/frame.h"
#include "reports/page/packed.h"
#include "reports/page/plots.h"
#include "reports/page/print.h"
#include "reports/sections/sections.h"

namespace attest {
namespace {

/// The ranges of a campaign's runs as they were finished; `journal`, which is canonical, has joined them.
std::vector<BatchRecord> campaign_of(const Journal& journal, const std::filesystem::path& folder) {
  const std::optional<Folder> files = Folder::if_there(folder);
  if (!journal.run || !journal.run->fuzz || !files || !files->holds("run.jsonl")) return {};
  // Whoever asks for the page has read it, and said what is wrong with it.
  Journal whole = read_journal(folder, {.salvage = true});
  // The folder of a journal under another name may hold a run that is another.
  return whole.run == journal.run ? std::move(whole.batches) : std::vector<BatchRecord>();
}

/// Of proofs alone, and of findings without a cause that tells them, what is folded else is what there is.
bool is_folded(const Section& section, const Reported& run) {
  const bool untold = run.summary.causes.empty() && !run.journal.findings.empty();
  return section.folded && !holds_proofs_alone(run.summary, run.journal) && !(section.id == "findings" && untold);
}

/// Packed in parts, so that what comes first is not kept back by what is long.
std::string packed_html_of(const Blocks& blocks) {
  constexpr std::size_t long_part = 32U << 10U;
  std::string html, part;
  for (const Block& block : blocks) {
    part += html_of({block});
    if (part.size() <= long_part) continue;
    html += packed(part);
    part.clear();
  }
  return html + part;
}

}  // namespace

std::string html_page(const Summary& summary, const Journal& journal, const std::string& folder,
                      const Conclusion& conclusion) {
  const std::string nonce = fresh_nonce();
  const PagePlots plots = page_plots(summary, campaign_of(journal, folder), nonce);
  const Reported run{summary, journal, folder, conclusion, plots.html.empty() ? Blocks() : Blocks{Drawing{plots.html}}};
  const bool no_kernel = holds_proofs_alone(summary, journal);
  std::string first, rest, links;
  bool beside = false;
  for (const Section& section : sections) {
    // What is about kernels would say that none was judged.
    const bool about_kernels = section.id != "evidence" && section.id != "environment";
    if (section.page == nullptr || (no_kernel && about_kernels)) continue;
    const Blocks blocks = section.page(run);
    if (blocks.empty()) continue;
    links += fmt::format("<a href=\"#{}\">{}</a> ", section.id, section.title);
    const bool folded = is_folded(section, run);
    const std::string heading = fmt::format("<h2>{}</h2>", section.title);
    // None of those that stand beside each other is folded.
    if (section.beside != beside) first += beside ? "</div>\n" : "<div class=\"beside\">\n";
    beside = section.beside;
    (folded ? rest : first) +=
        fmt::format("<section id=\"{}\">{}{}{}{}</section>\n", section.id,
                    folded ? fmt::format("<details class=\"folded\"><summary>{}</summary>", heading) : heading,
                    section.note.empty() ? "" : fmt::format("<p class=\"note\">{}</p>", section.note),
                    packed_html_of(blocks), folded ? "</details>" : "");
  }
  if (beside) first += "</div>\n";
  // The answer goes before the way to the rest; of a page that is all one, the way goes first.
  const std::string nav = fmt::format("<nav aria-label=\"Sections\">{}</nav>\n", links);
  const std::string body = rest.empty() ? nav + first : first + nav + rest;
  return framed({.title = fmt::format("Attest: {}", no_kernel ? "proofs" : conclusion.headline),
                 .heading = "Attest report",
                 .first = html_of(headline_page(run)),
                 .body = body,
                 .plots = plots},
                nonce);
}

}  // namespace attest
