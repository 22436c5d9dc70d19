// Wants: kinds of cases that a property means little without, so that a run can say where it drew too few of them.
#pragma once

#include <span>
#include <string_view>

namespace attest {

/// A case has what is wanted if one of the words of what was drawn (Tally::drawn) is among `any_of`. The words are of
/// one group of which a case has one word, or a single word, so that the counts of the words add up to cases.
struct Want {
  std::string_view what;    ///< what such a case has, to be read after "with": "a mask that hides keys"
  std::string_view any_of;  ///< words, a space between two
};

/// For statements about masks that do not arrange the mask themselves.
inline constexpr Want wants_hidden_keys[] = {
    {"a mask that hides keys",
     "mask:random mask:first-block mask:middle-block mask:last-block mask:padding mask:whole-row mask:whole-head "
     "mask:causal"}};

/// For statements that hold for every mask, those that add something included.
inline constexpr Want wants_a_mask[] = {
    {"a mask",
     "mask:random mask:first-block mask:middle-block mask:last-block mask:padding mask:whole-row mask:whole-head "
     "mask:causal mask:bias mask:alibi mask:finite-sentinel"}};

}  // namespace attest
