// What the scripts of both languages say in the same way (reproducer.h).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "reports/formats/reproducer.h"

namespace attest {

[[nodiscard]] std::string python_script(const Reproducer& reproducer);
[[nodiscard]] std::string c_script(const Reproducer& reproducer);

/// The tensors that scripts know, beside those of whole numbers (sequences_in_script).
inline constexpr std::array script_slots{
    Slot::q,         Slot::k,         Slot::v,         Slot::mask,  Slot::sink, Slot::keep, Slot::alibi_slopes,
    Slot::q_descale, Slot::k_descale, Slot::v_descale, Slot::d_out, Slot::d_lse};

/// What a script is about: "out", "dk".
[[nodiscard]] std::string_view answer_in_script(const Reproducer& reproducer);
[[nodiscard]] Shape shape_of_answer(const Reproducer& reproducer);
/// As axes_in_script.
[[nodiscard]] std::string axes_of_answer(const Reproducer& reproducer);

/// Neighbouring elements of the same bits.
struct EqualRun {
  std::int64_t first = 0, count = 0;
};
[[nodiscard]] std::vector<EqualRun> runs_of(const Tensor& tensor);
/// Whether runs are shorter to read than the numbers one by one.
[[nodiscard]] bool is_told_by_runs(const Tensor& tensor, const std::vector<EqualRun>& runs);
/// The bit pattern of an element.
[[nodiscard]] std::uint64_t bits_of(const Tensor& tensor, std::int64_t element);
/// Whether a NaN in it is another than the usual quiet one, so that only bits say which.
[[nodiscard]] bool has_unusual_nan(const Tensor& tensor);

/// The words separated by commas, in lines of at most 118 characters that begin with `indent`.
[[nodiscard]] std::string wrapped(const std::vector<std::string>& words, std::string_view indent);

/// What both ends of an enclosure round to, in as many digits as agree: a number that is rounded correctly.
[[nodiscard]] std::string certain_digits(const Enclosure& exact);

/// The extents as scripts name them.
struct ScriptExtents {
  std::int64_t B, H, KV, M, N, dk, dv;
};
[[nodiscard]] ScriptExtents script_extents(const Problem& problem);
/// The flat index of the entry of (b, h, i, j) of a mask, or of what says which weights are kept, in terms that both
/// languages have.
[[nodiscard]] std::string mask_index(const Problem& problem, Slot slot = Slot::mask);
/// What ALiBi slopes take from the score of row i and key j, in terms that both languages have; both empty: nothing.
struct SlopeInScript {
  std::string slope;  ///< "alibi_slopes[h]"
  std::string away;   ///< "i + N - M - j", a whole number of either sign
};
[[nodiscard]] SlopeInScript slope_in_script(const Problem& problem);
/// The factor of row i of q, or of key or value j, "k_descale[kv_head * 4 + j / 16]"; kv_head is b * KV + the head of k
/// and v. `divided` is how the language divides whole numbers. Empty: the tensor has none.
[[nodiscard]] std::string factor_in_script(const Problem& problem, Slot tensor, std::string_view divided);
/// Whole numbers that a script lists under a name.
struct WholeNumbersOfScript {
  std::string_view name;
  std::vector<std::int64_t> numbers;
};
/// Of sequences: their lengths or starts, the keys [begin, end) that each row of each entry sees by its sequence, its
/// causal form, its window and its chunk, and where slopes ask, the key at which a row's position is. None of another
/// problem.
[[nodiscard]] std::vector<WholeNumbersOfScript> sequences_in_script(const Problem& c);
/// The conditions by which sequences, causal form, window and chunks hide key j from row i, in terms that both
/// languages have: each is asked only where those before it do not hold.
[[nodiscard]] std::vector<std::string> hiding_by_position(const Problem& problem);
/// The problem in plain words, a line each.
[[nodiscard]] std::vector<std::string> words_of_problem(const Reproducer& reproducer);
/// Where the finding comes from, a line each: words of others, visible and on one line, none of which ends with a
/// backslash, so that each may stand behind a mark of comments.
[[nodiscard]] std::vector<std::string> words_of_origin(const Reproducer& reproducer);
/// "batch, heads, M, dk" in the letters of scripts: "[B, H, M, dk]".
[[nodiscard]] std::string axes_in_script(const Problem& problem, Slot slot);

}  // namespace attest
