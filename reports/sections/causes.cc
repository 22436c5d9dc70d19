#include "reports/results/cause_words.h"
#include "reports/run/run_folder.h"
#include "reports/sections/sections.h"

namespace attest {
namespace {

Group card_of(const CauseWords& cause) {
  Facts facts;
  const auto add = [&](std::string_view name, const std::string& said) {
    if (!said.empty()) facts.facts.push_back({name, {theirs(said)}});
  };
  add("when", cause.when);
  add("smallest", cause.smallest);
  add("found", cause.found);
  add("fails", cause.fails);
  Group card{.kind = Group::Kind::article,
             .title = {title_of(cause.kernel, cause.dtypes), ": ", theirs(cause.what)},
             .blocks = {std::move(facts)},
             .tags = {cause.kernel + " " + cause.dtypes}};
  if (!cause.replay.empty()) card.blocks.emplace_back(CodeLines{{cause.replay}});
  return card;
}

}  // namespace

Blocks causes_page(const Reported& run) {
  Blocks cards;
  for (const CauseWords& cause : words_of_causes(run.summary, run.folder, name_of_folder(run.folder)))
    cards.emplace_back(card_of(cause));
  return cards;
}

Brief causes_brief(const Reported& run) {
  Brief brief{"What is wrong", "causes", {}, {}};
  for (const CauseWords& cause : words_of_causes(run.summary, run.folder, name_of_folder(run.folder))) {
    Listing listing;
    const auto add = [&](std::string_view name, const std::string& said) {
      if (!said.empty()) listing.items.push_back({name, ": ", theirs(said)});
    };
    add("when", cause.when);
    add("smallest", cause.smallest);
    add("found", cause.found);
    add("fails", cause.fails);
    Group entry{.blocks = {Paragraph{{sign(Outcome::violated), " ", theirs(cause.kernel), " in ", theirs(cause.dtypes),
                                      ": ", theirs(cause.what)}},
                           std::move(listing)}};
    if (!cause.replay.empty()) entry.blocks.emplace_back(CodeLines{{cause.replay}});
    brief.entries.emplace_back(std::move(entry));
  }
  return brief;
}

}  // namespace attest
