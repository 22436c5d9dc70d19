#include "reports/formats/reproducer_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "core/problem/descale.h"
#include "core/problem/fields.h"
#include "core/problem/kv_cache.h"
#include "core/problem/score.h"
#include "core/problem/sequences.h"
#include "core/problem/sight.h"
#include "reports/text/text.h"

namespace attest {
namespace {

/// In quotes, so that whatever the words end with, the line does not.
std::string theirs(std::string_view words) {
  return fmt::format("\"{}\"", cut_short(one_line(words), 240));
}

/// "q, k, v and out in bf16", or each by itself where they differ.
std::string formats_of(const Reproducer& r) {
  const Problem& c = r.problem;
  const bool alike = c.k().dtype() == c.dtype() && c.v().dtype() == c.dtype() && r.output == c.dtype();
  std::string words = alike ? fmt::format("q, k, v and out in {}", name_of(c.dtype()))
                            : fmt::format("q in {}, k in {}, v in {}, out in {}", name_of(c.dtype()),
                                          name_of(c.k().dtype()), name_of(c.v().dtype()), name_of(r.output));
  if (c.mask().present()) words += fmt::format(", mask in {}", name_of(c.mask().dtype()));
  return words;
}

/// "descale: before all else rows are multiplied, q by q_descale, k by k_descale of each 16 keys".
std::string words_of_descale(const Problem& c) {
  std::string words;
  for (const Slot tensor : {Slot::q, Slot::k, Slot::v}) {
    if (!c[descale_of(tensor)].present()) continue;
    const bool of_q = tensor == Slot::q;
    const std::int64_t block = of_q ? c.q_descale_block : c.kv_descale_block;
    words += fmt::format("{}{} by {}", words.empty() ? "" : ", ", name_of(tensor), name_of(descale_of(tensor)));
    if (has_blocks(c, tensor))
      words += block == 1 ? fmt::format(" of each {}", of_q ? "row" : "key")
                          : fmt::format(" of each {} {}", block, of_q ? "rows" : "keys");
  }
  return "descale: before all else rows are multiplied, " + words;
}

}  // namespace

std::uint64_t bits_of(const Tensor& tensor, std::int64_t element) {
  const std::size_t size = size_of(tensor.dtype());
  std::uint64_t bits = 0;
  // Little-endian, as tensors are in memory and in their files.
  std::memcpy(&bits, tensor.bytes().data() + static_cast<std::size_t>(element) * size, size);
  return bits;
}

std::vector<EqualRun> runs_of(const Tensor& tensor) {
  std::vector<EqualRun> runs;
  for (std::int64_t e = 0; e < tensor.elements(); ++e) {
    if (!runs.empty() && bits_of(tensor, e) == bits_of(tensor, runs.back().first))
      ++runs.back().count;
    else
      runs.push_back({e, 1});
  }
  return runs;
}

bool is_told_by_runs(const Tensor& tensor, const std::vector<EqualRun>& runs) {
  constexpr std::int64_t few = 8;
  return tensor.elements() > few && 4 * std::ssize(runs) <= tensor.elements();
}

bool has_unusual_nan(const Tensor& tensor) {
  if (!tensor.present() || !is_floating(tensor.dtype())) return false;
  const std::vector<double> nan{std::numeric_limits<double>::quiet_NaN()};
  const std::uint64_t usual = bits_of(Tensor(tensor.dtype(), {1}, nan), 0);
  for (std::int64_t e = 0; e < tensor.elements(); ++e)
    if (std::isnan(tensor[e]) && bits_of(tensor, e) != usual) return true;
  return false;
}

std::string wrapped(const std::vector<std::string>& words, std::string_view indent) {
  constexpr std::size_t width = 118;
  std::string text;
  std::size_t column = width;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string word = words[i] + (i + 1 < words.size() ? "," : "");
    if (column + 1 + word.size() > width) {
      text += fmt::format("{}{}{}", text.empty() ? "" : "\n", indent, word);
      column = indent.size() + word.size();
    } else {
      text += " " + word;
      column += 1 + word.size();
    }
  }
  return text;
}

std::string certain_digits(const Enclosure& exact) {
  if (exact.lower == exact.upper) return fmt::format("{}", exact.lower + 0.0);
  for (int digits = 17; digits > 0; --digits) {
    std::string text = fmt::format("{:.{}g}", exact.lower, digits);
    if (text == fmt::format("{:.{}g}", exact.upper, digits)) return text;
  }
  return fmt::format("{}", exact.lower + (exact.upper - exact.lower) / 2);
}

ScriptExtents script_extents(const Problem& c) {
  const Shape &q = c.q().shape(), &k = c.k().shape(), &v = c.v().shape();
  return {.B = q[0], .H = q[1], .KV = k[1], .M = q[2], .N = k[2], .dk = q[3], .dv = v[3]};
}

std::string mask_index(const Problem& c, Slot slot) {
  const Shape& mask = c[slot].shape();
  const std::string head = mask[0] > 1 && mask[1] > 1 ? "(b * H + h) * M + i"
                           : mask[0] > 1              ? "b * M + i"
                           : mask[1] > 1              ? "h * M + i"
                                                      : "i";
  return fmt::format("{} * N + j", head == "i" ? head : "(" + head + ")");
}

std::string_view answer_in_script(const Reproducer& r) {
  return r.gradient ? name_of(*r.gradient) : "out";
}
Shape shape_of_answer(const Reproducer& r) {
  return r.gradient ? r.problem[slot_of(*r.gradient)].shape() : r.problem.out_shape();
}
std::string axes_of_answer(const Reproducer& r) {
  return axes_in_script(r.problem, r.gradient ? slot_of(*r.gradient) : Slot::d_out);
}

std::string axes_in_script(const Problem& c, Slot slot) {
  if (slot == Slot::d_out) return "[B, H, M, dv]";
  if (slot == Slot::d_lse) return "[B, H, M]";
  if (slot == Slot::q) return "[B, H, M, dk]";
  if (slot == Slot::k) return "[B, KV, N, dk]";
  if (slot == Slot::v) return "[B, KV, N, dv]";
  if (slot == Slot::sink) return "[H]";
  if (slot == Slot::alibi_slopes) return c[slot].shape()[0] > 1 ? "[B, H]" : "[1, H]";
  if (slot == Slot::q_descale || slot == Slot::k_descale || slot == Slot::v_descale) {
    const Shape& factors = c[slot].shape();
    return fmt::format("[{}, {}, {}]", factors[0] > 1 ? "B" : "1",
                       factors[1] == 1           ? "1"
                       : slot == Slot::q_descale ? "H"
                                                 : "KV",
                       factors[2]);
  }
  const Shape& mask = c[slot].shape();
  return fmt::format("[{}, {}, M, N]", mask[0] > 1 ? "B" : "1", mask[1] > 1 ? "H" : "1");
}

std::vector<WholeNumbersOfScript> sequences_in_script(const Problem& c) {
  if (!has_sequences(c)) return {};
  std::vector<WholeNumbersOfScript> lists;
  for (const Slot slot : {Slot::q_lengths, Slot::kv_lengths, Slot::left_pad, Slot::q_starts, Slot::kv_starts,
                          Slot::page_table, Slot::page_table_v}) {
    if (!c[slot].present()) continue;
    std::vector<std::int64_t>& numbers = lists.emplace_back(WholeNumbersOfScript{name_of(slot), {}}).numbers;
    for (std::int64_t e = 0; e < c[slot].elements(); ++e) numbers.push_back(static_cast<std::int64_t>(c[slot][e]));
  }
  WholeNumbersOfScript begin{"begin", {}}, end{"end", {}}, place{"place", {}};
  for (std::int64_t b = 0; b < batch_of(c); ++b) {
    for (std::int64_t i = 0; i < queries_of(c); ++i) {
      const std::optional<Sequence> own = sequence_at(c, b, i);
      const Sight seen = own ? sight(sight_rule(c), i - own->first_query, own->queries, own->keys) : Sight();
      begin.numbers.push_back(own ? own->first_key + seen.first : 0);
      end.numbers.push_back(own ? own->first_key + seen.last : 0);
      place.numbers.push_back(
          own ? own->first_key + position(sight_rule(c), i - own->first_query, own->queries, own->keys) : 0);
    }
  }
  lists.push_back(std::move(begin)), lists.push_back(std::move(end));
  if (c[Slot::alibi_slopes].present()) lists.push_back(std::move(place));
  return lists;
}

SlopeInScript slope_in_script(const Problem& c) {
  const Tensor& slopes = c[Slot::alibi_slopes];
  if (!slopes.present()) return {};
  return {.slope = slopes.shape()[0] > 1 ? "alibi_slopes[b * H + h]" : "alibi_slopes[h]",
          .away = !sequences_in_script(c).empty()       ? "place[b * M + i] - j"
                  : c.alignment == Causal::bottom_right ? "i + N - M - j"
                                                        : "i - j"};
}

std::string factor_in_script(const Problem& c, Slot tensor, std::string_view divided) {
  const Tensor& factors = c[descale_of(tensor)];
  if (!factors.present()) return {};
  const Shape& shape = factors.shape();
  const bool of_q = tensor == Slot::q;
  const std::string of_head = of_q ? "h" : fmt::format("h {0} (H {0} KV)", divided);
  const std::string head = shape[0] > 1 && shape[1] > 1 ? (of_q ? "b * H + h" : "kv_head")
                           : shape[1] > 1               ? of_head
                           : shape[0] > 1               ? "b"
                                                        : "";
  const std::int64_t block = of_q ? c.q_descale_block : c.kv_descale_block;
  const std::string row = of_q ? "i" : "j", in_blocks = block > 1 ? fmt::format("{} {} {}", row, divided, block) : row;
  std::string index = head.empty() ? "0" : head;
  if (shape[2] > 1) index = head.empty() ? in_blocks : fmt::format("({}) * {} + {}", head, shape[2], in_blocks);
  return fmt::format("{}[{}]", name_of(descale_of(tensor)), index);
}

std::vector<std::string> hiding_by_position(const Problem& c) {
  if (!sequences_in_script(c).empty()) return {"j < begin[b * M + i]", "j >= end[b * M + i]"};
  std::vector<std::string> conditions;
  if (c.causal == Causal::top_left) conditions.emplace_back("j > i");
  if (c.causal == Causal::bottom_right) conditions.emplace_back("j > i + N - M");
  // No side of these grows beyond 32 bits, however wide the window is and however long a chunk.
  const bool last = c.alignment == Causal::bottom_right;
  const std::string_view p = last ? "i + N - M" : "i", in_term = last ? "(i + N - M)" : "i";
  if (c.window_left >= 0) conditions.push_back(fmt::format("{} - j > {}", p, c.window_left));
  if (c.window_right >= 0) conditions.push_back(fmt::format("j - {} > {}", in_term, c.window_right));
  if (c.attention_chunk > 0) {
    // Of a position before the keys C rounds its chunk towards 0.
    if (last && queries_of(c) > keys_of(c)) conditions.emplace_back("i + N - M < 0");
    conditions.push_back(fmt::format("j - j % {0} != {1} - {2} % {0}", c.attention_chunk, p, in_term));
  }
  return conditions;
}

std::vector<std::string> words_of_problem(const Reproducer& r) {
  const Problem& c = r.problem;
  const ScriptExtents e = script_extents(c);
  const bool adds = c.mask().present() && c.mask().dtype() != DType::boolean;
  std::vector<std::string> lines;
  const std::string product = c.softcap > 0 ? "softcap * tanh(scale * q k^T / softcap)" : "scale * q k^T";
  const bool drops = c[Slot::keep].present(), slopes = c[Slot::alibi_slopes].present();
  lines.push_back(fmt::format("out = {}softmax({}{}){} v, {}", drops ? "dropout(" : "",
                              !adds                                           ? product
                              : convention_of(c) == MaskConvention::pre_scale ? "scale * (q k^T + mask)"
                                                                              : product + " + mask",
                              slopes ? " - slope * abs(p - j)" : "", drops ? ")" : "", formats_of(r)));
  if (e.H != e.KV)
    lines.push_back(fmt::format("grouped heads: head h reads the keys and values of head h / {}", e.H / e.KV));
  if (c.causal == Causal::top_left) lines.emplace_back("causal from the top left: row i sees key j where j <= i");
  if (c.causal == Causal::bottom_right)
    lines.emplace_back("causal from the bottom right: row i sees key j where j <= i + N - M");
  if (has_variant(c, window_variant.name)) {
    const bool last = c.alignment == Causal::bottom_right;
    lines.push_back(fmt::format("window from the {}: row i sees key j where {}{}{}", last ? "bottom right" : "top left",
                                c.window_left >= 0 ? fmt::format("{} <= ", -c.window_left) : "",
                                last ? "j - (i + N - M)" : "j - i",
                                c.window_right >= 0 ? fmt::format(" <= {}", c.window_right) : ""));
  }
  if (c.attention_chunk > 0)
    lines.push_back(
        fmt::format("chunks of {0} keys from the {1}: row i sees key j where floor(j / {0}) = floor({2} / {0})",
                    c.attention_chunk, c.alignment == Causal::bottom_right ? "bottom right" : "top left",
                    c.alignment == Causal::bottom_right ? "(i + N - M)" : "i"));
  if (slopes)
    lines.push_back(fmt::format("alibi_slopes: slope is that of the head{}, and p = {} the position of row i",
                                c[Slot::alibi_slopes].shape()[0] > 1 ? " and the batch entry" : "",
                                c.alignment == Causal::bottom_right ? "i + N - M" : "i"));
  if (has_variant(c, descale_variant.name)) lines.push_back(words_of_descale(c));
  if (c.softcap > 0)
    lines.push_back(fmt::format("softcap {}: a scaled product t is softcap * tanh(t / softcap) before {}", c.softcap,
                                adds     ? "the mask is added"
                                : slopes ? "the slope's term"
                                         : "the softmax"));
  if (r.gradient)
    lines.push_back(fmt::format("{} is a loss's gradient by {}, of which d_out is the gradient by out{}",
                                name_of(*r.gradient), name_of(slot_of(*r.gradient)),
                                c[Slot::d_lse].present() ? ", and d_lse that by each row's log-sum-exp" : ""));
  if (c[Slot::sink].present())
    lines.emplace_back("sink: e^sink of the head joins the sum of each row's weights, and no value goes with it");
  if (drops)
    lines.push_back(fmt::format(
        "dropout: of a row's normalised weights those where keep is false are 0{}, and nothing is normalised again",
        c.dropout_p > 0 ? fmt::format(", the others divided by 1 - {}", c.dropout_p) : ""));
  if (c.mask().present() && !adds) lines.emplace_back("mask: true where a row sees a key");
  if (has_variant(c, lengths_variant.name))
    lines.emplace_back(
        "lengths: the first rows and keys of each batch entry are its own, and positions, M and N are theirs");
  if (has_variant(c, left_pad_variant.name))
    lines.emplace_back(
        "left_pad: so many of the first keys of each batch entry are not its own; j and N do not count them");
  if (c[Slot::page_table].present())
    lines.push_back(
        fmt::format("paged: the kernel had k and v in pages of {} keys, which the table names; here they stand one "
                    "after another",
                    page_size_of(c)));
  if (c[Slot::cache_index].present())
    lines.push_back(
        fmt::format("cache_index: the kernel had k and v in rows {} of a cache; here they are those of the batch",
                    fmt::join(c[Slot::cache_index].to_doubles(), ", ")));
  if (c.append > 0)
    lines.push_back(
        fmt::format("append: of each batch entry's keys the kernel got the last {} as k_new and v_new, to write into k "
                    "and v; here they stand there",
                    c.append));
  if (has_variant(c, packed_variant.name))
    lines.emplace_back(
        "packed: sequence s has the tokens from start[s] to before start[s + 1], and its own positions, M and N");
  return lines;
}

std::vector<std::string> words_of_origin(const Reproducer& r) {
  std::vector<std::string> lines;
  lines.push_back(fmt::format("kernel: {}, as {}{}{}", theirs(r.name), theirs(r.kernel),
                              r.version.empty() ? "" : ", version ", r.version.empty() ? "" : theirs(r.version)));
  if (!r.ended.empty()) lines.push_back(fmt::format("its call gave no output: {}", theirs(r.ended)));
  if (!r.comes_and_goes.empty()) lines.push_back(r.comes_and_goes);
  lines.push_back(fmt::format("found by Attest, property {}{}", r.property,
                              r.replay.empty() ? "" : fmt::format("; with it: {}", theirs(r.replay))));
  return lines;
}

}  // namespace attest
