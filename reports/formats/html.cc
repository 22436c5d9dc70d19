#include "reports/formats/html.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <random>
#include <string_view>
#include <vector>

#include "core/support/folder.h"
#include "reports/page/packed.h"
#include "reports/page/plots.h"
#include "reports/page/print.h"
#include "reports/run/embedded_files.h"
#include "reports/sections/sections.h"

namespace attest {
namespace {

/// What the content-security-policy lets run: nobody can have written it into a name beforehand.
std::string fresh_nonce() {
  std::random_device source;
  std::string nonce;
  for (int i = 0; i < 4; ++i) nonce += fmt::format("{:08x}", static_cast<std::uint32_t>(source()));
  return nonce;
}

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
  // Vega compiles the expressions of its specifications, which are the program's own.
  const std::string_view may_compile = plots.script.empty() ? "" : " 'unsafe-eval'";
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
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
      "script-src 'nonce-{}'{}\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>Attest: {}</title>\n<style>{}</style></head>\n"
      "<body><main>\n<header><h1>Attest report</h1>{}</header>\n{}</main>\n"
      "<script nonce=\"{}\">{}</script>\n{}"
      "</body></html>\n",
      nonce, may_compile, no_kernel ? "proofs" : conclusion.headline, embedded_file("page/style.css"),
      html_of(headline_page(run)), body, nonce, embedded_file("page/script.js"), plots.script);
}

}  // namespace attest
