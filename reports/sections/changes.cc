#include "reports/sections/sections.h"

namespace attest {
namespace {

Text counts_of(const Comparison& comparison) {
  return {"Against ", code(comparison.baseline), ": ", in_words(comparison).counts, "."};
}

Piece change_of(const Difference& one) {
  const Outcome colour = one.direction == Direction::worse    ? Outcome::violated
                         : one.direction == Direction::better ? Outcome::held
                                                              : Outcome::skipped;
  return badge(colour, name_of(one.direction));
}

}  // namespace

Blocks changes_page(const Reported& run) {
  if (!run.conclusion.changes) return {};
  const Comparison& comparison = *run.conclusion.changes;
  Blocks blocks{Paragraph{counts_of(comparison)}, Paragraph{in_words(comparison).noise, "note"}};
  Table table{"What is worse, better or otherwise than in the baseline",
              columns_of("change|kernel|dtype|property|in words")};
  table.heading = table.columns.size();
  for (const Difference& one : comparison.differences)
    table.rows.push_back(
        {{change_of(one), theirs(one.kernel), theirs(one.dtype), theirs(one.property), theirs(one.words)},
         {one.kernel + ' ' + one.dtype, one.property}});
  if (!table.rows.empty()) blocks.emplace_back(std::move(table));
  return blocks;
}

Brief changes_brief(const Reported& run) {
  if (!run.conclusion.changes) return {};
  const Comparison& comparison = *run.conclusion.changes;
  Brief brief{"What changed", "changes", {Paragraph{counts_of(comparison)}}, {}};
  const Paragraph noise{in_words(comparison).noise};
  // Of no differences, the words on noise are what is said.
  if (comparison.differences.empty()) {
    brief.entries.emplace_back(noise);
    return brief;
  }
  brief.before.emplace_back(noise);
  Listing listing;
  for (const Difference& one : comparison.differences) {
    const Text of = one.property.empty() ? Text() : Text{theirs(one.property), " by "};
    listing.items.push_back(
        {change_of(one), ": ", of, theirs(one.kernel), " in ", theirs(one.dtype), ": ", theirs(one.words)});
  }
  brief.entries.emplace_back(std::move(listing));
  return brief;
}

}  // namespace attest
