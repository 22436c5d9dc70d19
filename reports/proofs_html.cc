#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <tuple>

#include "html_elements.h"
#include "html_sections.h"

namespace attest {

std::string proofs_html(const Journal& journal) {
  constexpr std::array<std::string_view, 9> strongest_first{"DIFFERENT",  "coq-all-shapes", "symbolic",
                                                            "particular", "probabilistic",  "abstract",
                                                            "refuted",    "tested",         "untreated"};
  const auto rank = [&](const ProofRecord& proof) {
    return std::tuple(proof.property, std::ranges::find(strongest_first, proof.level) - strongest_first.begin(),
                      proof.subject, proof.words);
  };
  std::vector<ProofRecord> proofs = journal.proofs;
  std::ranges::sort(proofs, {}, rank);
  std::string rows;
  std::string_view last;
  for (const ProofRecord& proof : proofs) {
    rows += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
                        proof.property == last ? "" : escaped(proof.property), escaped(proof.level),
                        escaped(proof.subject), escaped(proof.words));
    last = proof.property;
  }
  return "<div class=\"scroll\"><table><thead><tr><th scope=\"col\">property</th><th scope=\"col\">evidence</th><th "
         "scope=\"col\">about</th><th scope=\"col\">words</th></tr>"
         "</thead><tbody>" +
         rows + "</tbody></table></div>";
}

}  // namespace attest
